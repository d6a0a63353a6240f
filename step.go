package umavez

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Step runs one named part of a stepped operation, usually one call to a
// foreign system, and keeps its result in the record before it returns. On a
// later attempt a kept step is answered from the record and does not run.
//
// call gets a key that is the same on every attempt, for ever (see
// [DerivedKey]); it hands it to the foreign system, which must run the call
// once for that key. What call returns decides:
//
//   - nil: the value is kept;
//   - [Final]: the step ended with this error, which is kept too;
//   - any other error: it may have happened. The step is in doubt, and the next
//     attempt sends it again with the same key.
//
// The step in doubt is sent again only for as long as the foreign system
// honours its key; see [KeyHonouredFor] and [NoForeignKey]. After that Step
// returns a [*StepError], the key becomes unknown when the operation returns,
// and no attempt takes it over.
//
// Names are of the operation's own choosing, 1 to MaxStepName bytes. Steps are
// asked in the same order on every attempt. When the code has changed, so that a
// kept step is missing, renamed or in another order, the key becomes unknown,
// too: what would run then might have happened under another name. Steps may run
// beside each other; the same name twice in one attempt is [ErrStepTwice].
func Step[T any](ctx context.Context, name string, call func(ctx context.Context, key string) (T, error), options ...StepOption) (T, error) {
	var zero T
	a := FromContext(ctx)
	if a == nil {
		return zero, ErrNoAttempt
	}
	o := stepOptions{honoured: DefaultKeyHonoured, codec: jsonCodec{}}
	for _, set := range options {
		set(&o)
	}
	kept, after, err := a.enterStep(ctx, name, &o)
	if err != nil {
		return zero, err
	}
	if kept != nil {
		return fromKept[T](name, kept, o.codec)
	}
	value, err := call(ctx, a.lease.ID.DerivedKey(name))
	final, isFinal := errors.AsType[*FinalError](err)
	if err != nil && !isFinal {
		return value, err
	}
	result := stepResult{After: after}
	if isFinal {
		result.Final = &final.Message
	}
	if result.Value, err = o.codec.Marshal(value); err != nil {
		return value, fmt.Errorf("umavez: the result of step %q cannot be kept: %w", name, err)
	}
	//nolint:contextcheck // what has happened is kept, also when the operation is told to stop
	if err := a.keepStep(name, result); err != nil {
		return value, err
	}
	if isFinal {
		return value, final
	}
	return value, nil
}

// DerivedKey is the key of a step of the record: a UUIDv8 (RFC 9562) made of the
// record's id and the step's name. It never changes, whatever becomes of the
// record.
func (id ID) DerivedKey(step string) string {
	b := append([]byte("umavez step 1\x00"), id[:]...)
	sum := sha256.Sum256(append(b, step...))
	u := sum[:16]
	u[6] = u[6]&0x0f | 0x80 // version 8
	u[8] = u[8]&0x3f | 0x80 // variant
	s := hex.EncodeToString(u)
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

// DerivedKey returns the derived key of a step of the running operation, of any
// policy, for those who need only the key: see [ID.DerivedKey].
func DerivedKey(ctx context.Context, step string) (string, error) {
	a := FromContext(ctx)
	if a == nil {
		return "", ErrNoAttempt
	}
	return a.lease.ID.DerivedKey(step), nil
}

// Limits of what a record holds: all of its steps are read with it on every claim.
const (
	// MaxStepName is the longest name of a step, in bytes.
	MaxStepName = 255
	// MaxStepResult is the longest result of a step, in bytes as it is kept.
	MaxStepResult = 64 << 10
	// MaxSteps is how many steps one operation may keep.
	MaxSteps = 256
)

// DefaultKeyHonoured is for how long a foreign system is taken to honour a key:
// well under the 24 hours that payment systems state.
const DefaultKeyHonoured = 20 * time.Hour

// StepOption sets a step up.
type StepOption func(*stepOptions)

type stepOptions struct {
	honoured time.Duration
	noKey    bool
	codec    StepCodec
}

// KeyHonouredFor says for how long the foreign system honours the step's key.
// It counts from the record's first claim, by the store's clock. Default 20 h.
func KeyHonouredFor(d time.Duration) StepOption {
	return func(o *stepOptions) { o.honoured = d }
}

// NoForeignKey says that the foreign system honours no key: the step is noted
// before it is sent, which costs one more write, and is never sent twice. Lost in
// the middle, it makes the key unknown.
func NoForeignKey() StepOption { return func(o *stepOptions) { o.noKey = true } }

// StepCodec turns results of steps into bytes and back.
type StepCodec interface {
	Marshal(v any) ([]byte, error)
	Unmarshal(data []byte, v any) error
}

// WithCodec keeps the step's result by another codec than JSON.
func WithCodec(c StepCodec) StepOption { return func(o *stepOptions) { o.codec = c } }

type jsonCodec struct{}

func (jsonCodec) Marshal(v any) ([]byte, error)      { return json.Marshal(v) }
func (jsonCodec) Unmarshal(data []byte, v any) error { return json.Unmarshal(data, v) }

// stepResult is how a step's result is kept.
type stepResult struct {
	Value []byte  `json:"value,omitempty"`
	Final *string `json:"final,omitempty"`
	// After is how many steps of the record were kept before this one began.
	After int `json:"after,omitempty"`
	// Sent: the note that a step without a foreign key is about to be sent.
	Sent bool `json:"sent,omitempty"`
}

// fromKept answers a step from the record.
func fromKept[T any](name string, kept *stepResult, codec StepCodec) (value T, err error) {
	if err := codec.Unmarshal(kept.Value, &value); err != nil {
		return value, fmt.Errorf("umavez: the kept result of step %q does not fit any more: %w", name, err)
	}
	if kept.Final != nil {
		return value, &FinalError{Message: *kept.Final}
	}
	return value, nil
}

var (
	// ErrNotStepped: the operation was not declared as stepped.
	ErrNotStepped = errors.New("umavez: the operation is not stepped")
	// ErrStepTwice: the attempt has asked for a step of this name already.
	ErrStepTwice = errors.New("umavez: a step of this name was asked for twice in one attempt")
)

// StepError: the step cannot be run, and so its key becomes unknown.
type StepError struct {
	Step   string
	Reason Reason // ReasonStepInDoubt or ReasonCodeChanged
	detail string
}

// Error names the step and says why.
func (e *StepError) Error() string { return fmt.Sprintf("umavez: step %q: %s", e.Step, e.detail) }
