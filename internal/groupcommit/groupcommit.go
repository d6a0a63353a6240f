// Package groupcommit gathers what waits for a store's disk into one batch and
// one commit. It knows nothing of SQL: a store gives it a function that applies
// a batch, and calls Do for each operation.
//
// Its rules:
//
//   - when nothing is in flight, an operation is flushed at once: an idle store
//     has no added delay;
//   - a batch is bounded in rows, bytes and time, and the number of batches in
//     flight is fixed, so that a connection that hangs stops one batch;
//   - a batch is sorted by key, and operations on one key keep their order;
//   - a batch that ends in "don't know" is that for each of its callers;
//   - one bad row fails one caller: what was skipped or refused in company goes
//     again alone;
//   - a caller whose context ends leaves at once, and learns whether its
//     operation may still happen.
//
// There is no goroutine but while there is work.
//
// Start reading at batcher.go; gather.go picks a batch, flight.go sees it
// through.
package groupcommit

import (
	"context"
	"errors"
	"time"

	"github.com/umavez/umavez"
)

// Op is one operation that waits for a batch. It is usually a pointer to a
// struct that also takes the operation's results: they may be read after Do has
// returned nil or an error that the flush gave to this operation, and never
// after a [*umavez.StoreError], because a batch that was given up on may still
// be writing them.
type Op interface {
	// Name is the store contract's name of the call: "claim", "complete", …
	Name() string
	// Key is what a batch is sorted by.
	Key() umavez.ID
	// Size is about how many bytes the operation writes.
	Size() int
}

// Flush applies a batch and makes it durable. It puts the result of ops[i] into
// errs[i], where nil means done; an [*Alone] there sends the operation again,
// in a batch of its own. An error that it returns is the result of every
// operation in the batch: a [*umavez.StoreError] says whether the batch may
// have been applied, any other error counts as Maybe.
//
// The context ends when the batch has taken MaxTime; ops and errs belong to the
// batcher again when Flush returns.
type Flush[O Op] func(ctx context.Context, ops []O, errs []error) error

// Alone is a result that an operation may get only in company: it was skipped
// or refused, it has changed nothing, and it goes again in a batch of its own.
// When it was alone already, Err is its result.
type Alone struct{ Err error }

// Error names the cause.
func (a *Alone) Error() string { return "umavez: to be repeated alone: " + a.Err.Error() }

// Unwrap returns the cause.
func (a *Alone) Unwrap() error { return a.Err }

// Config sets a [Batcher] up. The zero value of every field but Flush means its
// default.
type Config[O Op] struct {
	// Flush applies a batch.
	Flush Flush[O]
	// InFlight is how many batches may be under way at once. Default 1, for
	// stores that have one writer; with 2, a hung connection leaves one working.
	InFlight int
	// MaxRows bounds the operations in a batch. Default 256: beyond it a
	// commit's cost is spread thin enough, and the batch only holds its locks
	// for longer.
	MaxRows int
	// MaxBytes bounds a batch's size; a larger operation goes alone. Default 1 MiB.
	MaxBytes int
	// MaxTime ends a batch's context, and a quarter of it later the batch is
	// given up on: its callers do not wait for a connection that hangs.
	// Default 2 s, the time that the engine gives a claim.
	MaxTime time.Duration
	// MaxQueue bounds the operations that wait. Beyond it Do answers at once
	// that nothing was applied. Default 8,192: at ten thousand a second, what
	// stood behind them would wait for about a second, half of MaxTime.
	MaxQueue int
	// MaxQueueBytes bounds their size. Default 64 MiB, as much as the engine
	// keeps of answers that are not saved yet.
	MaxQueueBytes int
	// OnePerKey keeps two operations on one key out of the same batch, for
	// stores that apply a batch as one statement. The later one waits.
	OnePerKey bool
}

// The defaults of [Config].
const (
	defaultInFlight      = 1
	defaultMaxRows       = 256
	defaultMaxBytes      = 1 << 20
	defaultMaxTime       = 2 * time.Second
	defaultMaxQueue      = 8192
	defaultMaxQueueBytes = 64 << 20
)

// What Do answers when an operation was not flushed, or its batch not answered.
var (
	// ErrFull: too much is waiting already.
	ErrFull = errors.New("umavez: too much is waiting for the store")
	// ErrClosed: the store is closed, or closing.
	ErrClosed = errors.New("umavez: the store is closed")
	// ErrHung: the batch has not ended in its time and was given up on.
	ErrHung = errors.New("umavez: the store did not end the batch in time")
)

// Stats counts what a batcher has done since it was made.
type Stats struct {
	// Batches and Rows count what was flushed. An operation that went again
	// alone counts twice.
	Batches, Rows uint64
	// Largest is the greatest number of rows in one batch.
	Largest int
	// GivenUp counts the batches that did not end in time.
	GivenUp uint64
	// Queued and InFlight are what waits, in operations, and what is under
	// way, in batches, now.
	Queued, InFlight int
}
