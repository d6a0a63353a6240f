package umavezhttp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
)

// faultyStore lets a test fail the calls of a store, and see their order.
type faultyStore struct {
	umavez.Store
	// before is asked before a call; an error is the call's, which then is not
	// made. after is told of the call, and may lose its reply.
	before, after func(op string) error
}

var errStoreDown = &umavez.StoreError{Op: "test", Applied: umavez.No, Err: errors.New("secret: connection refused")}

func (s *faultyStore) call(op string, do func() error) error {
	if s.before != nil {
		if err := s.before(op); err != nil {
			return err
		}
	}
	err := do()
	if s.after != nil {
		if lost := s.after(op); lost != nil {
			return lost
		}
	}
	return err
}

func (s *faultyStore) Claim(ctx context.Context, id umavez.ID, req umavez.ClaimRequest) (rec umavez.Record, acquired bool, err error) {
	err = s.call("claim", func() error {
		rec, acquired, err = s.Store.Claim(ctx, id, req)
		return err
	})
	return rec, acquired, err
}

func (s *faultyStore) Checkpoint(ctx context.Context, l umavez.Lease, step string, result []byte) error {
	return s.call("note", func() error { return s.Store.Checkpoint(ctx, l, step, result) })
}

func (s *faultyStore) Complete(ctx context.Context, l umavez.Lease, answer []byte, keep umavez.Retention) error {
	return s.call("complete", func() error { return s.Store.Complete(ctx, l, answer, keep) })
}

func (s *faultyStore) Release(ctx context.Context, l umavez.Lease) error {
	return s.call("release", func() error { return s.Store.Release(ctx, l) })
}

func (s *faultyStore) Abandon(ctx context.Context, l umavez.Lease, why umavez.Reason, last []byte) error {
	return s.call("abandon", func() error { return s.Store.Abandon(ctx, l, why, last) })
}

func (s *faultyStore) Extend(ctx context.Context, l umavez.Lease, d time.Duration) error {
	return s.call("extend", func() error { return s.Store.Extend(ctx, l, d) })
}

func (s *faultyStore) Get(ctx context.Context, id umavez.ID) (rec umavez.Record, err error) {
	err = s.call("get", func() error {
		rec, err = s.Store.Get(ctx, id)
		return err
	})
	return rec, err
}

// journal lists what happened, in order.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, line)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.lines, " ")
}

// journaling is a store that writes down its calls once they are acknowledged.
func journaling(j *journal) *faultyStore {
	return &faultyStore{Store: memstore.New(memstore.Options{}), after: func(op string) error {
		j.add(op)
		return nil
	}}
}

// journalWriter is a client's ResponseWriter that writes down what reaches it.
type journalWriter struct {
	*httptest.ResponseRecorder
	j *journal
}

func (w journalWriter) WriteHeader(status int) {
	w.j.add(fmt.Sprint("header-", status))
	w.ResponseRecorder.WriteHeader(status)
}

func (w journalWriter) Write(p []byte) (int, error) {
	w.j.add(fmt.Sprint("body-", len(p)))
	return w.ResponseRecorder.Write(p)
}

func (w journalWriter) WriteString(s string) (int, error) { return w.Write([]byte(s)) }

func (w journalWriter) Flush() {
	w.j.add("flush")
	w.ResponseRecorder.Flush()
}

// damagedStore flips a bit of every answer, or of every last word, that it gives.
func damagedStore(state string) umavez.Store {
	return &damaging{Store: memstore.New(memstore.Options{}), state: state}
}

type damaging struct {
	umavez.Store
	state string
}

func (s *damaging) Claim(ctx context.Context, id umavez.ID, req umavez.ClaimRequest) (umavez.Record, bool, error) {
	rec, acquired, err := s.Store.Claim(ctx, id, req)
	flip := func(b []byte) []byte {
		b = append([]byte(nil), b...)
		if len(b) > 0 {
			b[len(b)/2] ^= 4
		}
		return b
	}
	switch s.state {
	case "done":
		rec.Answer = flip(rec.Answer)
	case "lost":
		rec.Last = flip(rec.Last)
	}
	return rec, acquired, err
}
