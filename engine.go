package umavez

import (
	"context"
	"time"
)

// Options sets an engine up. The zero value of every field means its default.
type Options struct {
	// Lease is an attempt's right to finish its key, for a time. Heartbeats
	// extend it every third of it. Default 15 s.
	Lease time.Duration
	// MaxRun ends every heartbeat: an attempt that runs longer is lost. Default 5 min.
	MaxRun time.Duration
	// Retain is how long answers are given, from their completion. Default 24 h.
	Retain time.Duration
	// Tombstone is how long after that a late retry is refused. Default 30 days
	// for opaque operations and none for others; negative: none.
	Tombstone time.Duration
	// ClaimTimeout bounds a claim with all its repeats. After it the answer is
	// ErrUnavailable. Default 2 s.
	ClaimTimeout time.Duration
	// SaveTimeout is how long Complete, Release and Abandon keep their caller
	// waiting for the store before they go on in the background. Default 2 s.
	SaveTimeout time.Duration
	// MaxWaiters bounds the duplicates that wait, in this process. Default 10,000.
	MaxWaiters int
	// MaxWaitersPerKey bounds the duplicates that wait for one key. Default 128.
	MaxWaitersPerKey int
	// MaxUnsaved bounds the answers, in bytes, that the store has not taken
	// yet. Beyond it new claims get ErrUnavailable. Default 64 MiB.
	MaxUnsaved int64
	// MaxReleases bounds the claims that wait to be released in the background.
	// Beyond it new claims get ErrUnavailable. Default 1,024.
	MaxReleases int
	// Observe is told of every moment. It is called on the attempt's own
	// goroutine and must be quick and safe for concurrent use.
	Observe func(Observation)
}

// Engine runs operations once. Make one for each store with [New], and end it
// with Close.
type Engine struct {
	store Store
	opt   Options
}

// New checks the options. It starts nothing.
func New(store Store, o Options) (*Engine, error) { return &Engine{store: store, opt: o}, nil }

// Claim tries to win the operation's key. Exactly one of three things comes back:
//
//   - an attempt: the caller runs the operation now, on the attempt's Context,
//     and ends the attempt with exactly one of Complete, Release and Abandon;
//   - a record that answers instead, by its State: Done (replay its Answer),
//     Running (still in progress after the wait), Lost (outcome unknown; may
//     have a Last), Expired (a tombstone), or Vacant: the attempt that this
//     caller waited for was released, with rec.Answer as its answer;
//   - an error: ErrKeyReused (rec is the record whose fingerprint differs),
//     ErrRecipeUnknown, ErrUnavailable, ErrClosed, or the context's.
//     Nothing was run.
func (e *Engine) Claim(ctx context.Context, op Operation) (*Attempt, Record, error) {
	return nil, Record{}, ErrClosed
}

// Get returns the record of a key as the store has it.
func (e *Engine) Get(ctx context.Context, k Key) (Record, error) { return e.store.Get(ctx, k.ID()) }

// Run does the engine's housekeeping (purging) until ctx ends.
func (e *Engine) Run(ctx context.Context) error { return nil }

// Close takes no new claims, and waits until running attempts have ended and
// unsaved answers are saved, or ctx ends: then it returns an [*UnfinishedError].
func (e *Engine) Close(ctx context.Context) error { return nil }

// Attempt is a won claim: one try at an operation.
type Attempt struct{}

// FromContext returns the attempt that ctx runs under, or nil.
func FromContext(ctx context.Context) *Attempt { return nil }

// Context is the operation's: it has the values of the caller's context but not
// its cancellation or deadline, since a client that hangs up changes nothing.
// It ends, with a cause, only when the attempt must stop.
func (a *Attempt) Context() context.Context { return nil }

// Complete saves the answer. nil: the store has acknowledged it. ErrUnsaved: it
// goes on in the background, and the caller may answer "unsaved". ErrLeaseLost:
// the key went to someone else; the record answers.
func (a *Attempt) Complete(answer []byte) error { return nil }

// Release says that nothing happened and nothing will: the key is vacant again.
// Duplicates that wait get answer (which is not stored), but for one that claims.
func (a *Attempt) Release(answer []byte) error { return nil }

// Abandon says that the attempt has ended and its outcome is not known. last is
// the last answer that was seen of it, or nil.
func (a *Attempt) Abandon(reason Reason, last []byte) error { return nil }

// Note keeps what is known of an answer that goes out live, before it ends.
func (a *Attempt) Note(last []byte) error { return nil }

// Mark returns what the operation said of its outcome, and why if it is MarkUnknown.
func (a *Attempt) Mark() (Mark, Reason) { return MarkNone, "" }

// Seal ends the time for marks: the answer's first byte is about to go out.
func (a *Attempt) Seal() {}

func (a *Attempt) setMark(m Mark, why Reason) error { return nil }
