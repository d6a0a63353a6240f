package killtable

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/umavez/umavez"
)

// ErrDead is what a dead process's calls come to when the test lets go of them.
// Nobody is there to hear it.
var ErrDead = errors.New("umavez: killtable: the process is dead")

// Process is a process that dies at one line.
type Process struct {
	// DiesAt is the line's name. Empty: it lives.
	DiesAt string
	// Die kills it. Where the process is only played, Die keeps its caller from
	// going on for as long as the test looks at what is left, and then returns.
	Die func()

	mu    sync.Mutex
	dead  bool
	lines []string
}

// Lines returns the lines that the process has come to, in their order.
func (p *Process) Lines() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.lines)
}

// at comes to a line. After its death the process comes to no other one.
func (p *Process) at(line string) error {
	p.mu.Lock()
	p.lines = append(p.lines, line)
	if line == p.DiesAt {
		p.dead = true
	}
	dead := p.dead
	p.mu.Unlock()
	if dead {
		p.Die()
		return ErrDead
	}
	return nil
}

// around is a store call with a line before and after it.
func (p *Process) around(call string, do func() error) error {
	if err := p.at("before " + call); err != nil {
		return &umavez.StoreError{Op: call, Applied: umavez.No, Err: err}
	}
	answered := do()
	if err := p.at("after " + call); err != nil {
		return &umavez.StoreError{Op: call, Applied: umavez.Maybe, Err: err}
	}
	return answered
}

// Over returns the store as the process uses it.
func (p *Process) Over(s umavez.Store) umavez.Store {
	plain := dying{p, s}
	if marker, ok := s.(umavez.StartMarker); ok {
		return marking{plain, marker}
	}
	return plain
}

type dying struct {
	process *Process
	store   umavez.Store
}

// marking is the same for a store that notes starts.
type marking struct {
	dying
	marker umavez.StartMarker
}

// Started implements [umavez.StartMarker].
func (m marking) Started(l umavez.Lease) error {
	return m.process.around("start", func() error { return m.marker.Started(l) })
}

// Claim implements [umavez.Store].
func (d dying) Claim(ctx context.Context, id umavez.ID, req umavez.ClaimRequest) (rec umavez.Record, acquired bool, err error) {
	err = d.process.around("claim", func() (err error) {
		rec, acquired, err = d.store.Claim(ctx, id, req)
		return err
	})
	return rec, acquired, err
}

// Checkpoint implements [umavez.Store]. Each step's line has its name.
func (d dying) Checkpoint(ctx context.Context, l umavez.Lease, step string, result []byte) error {
	return d.process.around(fmt.Sprintf("checkpoint %q", step), func() error {
		return d.store.Checkpoint(ctx, l, step, result)
	})
}

// Complete implements [umavez.Store].
func (d dying) Complete(ctx context.Context, l umavez.Lease, answer []byte, keep umavez.Retention) error {
	return d.process.around("complete", func() error { return d.store.Complete(ctx, l, answer, keep) })
}

// Release implements [umavez.Store].
func (d dying) Release(ctx context.Context, l umavez.Lease) error {
	return d.process.around("release", func() error { return d.store.Release(ctx, l) })
}

// Abandon implements [umavez.Store].
func (d dying) Abandon(ctx context.Context, l umavez.Lease, reason umavez.Reason, last []byte) error {
	return d.process.around("abandon", func() error { return d.store.Abandon(ctx, l, reason, last) })
}

// Extend implements [umavez.Store]. Leases outlast the test, so it is never called.
func (d dying) Extend(ctx context.Context, l umavez.Lease, lease time.Duration) error {
	return d.process.around("extend", func() error { return d.store.Extend(ctx, l, lease) })
}

// Get implements [umavez.Store]. It changes nothing, and so has no lines.
func (d dying) Get(ctx context.Context, id umavez.ID) (umavez.Record, error) {
	return d.store.Get(ctx, id)
}
