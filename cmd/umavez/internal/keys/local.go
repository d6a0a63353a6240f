package keys

import (
	"context"
	"strings"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/umavezhttp"
)

// Local is the [Desk] over a store that this process has opened.
type Local struct {
	// Engine is over Store, with the key ring if there is one.
	Engine *umavez.Engine
	Store  umavez.Store
	// Keep says how long answers of a route stand. nil, or zero: as the engine has it.
	Keep func(route string) umavez.Retention
	// Now is the clock that entries of the trail are dated by.
	Now func() time.Time
}

// List returns a page of the store's records.
func (l *Local) List(ctx context.Context, f Filter) (Page, error) {
	q, err := f.query()
	if err != nil {
		return Page{}, err
	}
	records, err := l.Engine.List(ctx, q)
	if err != nil {
		return Page{}, l.fault("the store did not list its records", err)
	}
	page := Page{Keys: []Key{}}
	for i := range records {
		if f.wants(&records[i].Record) {
			page.Keys = append(page.Keys, keyOf(records[i].ID, &records[i].Record))
		}
	}
	if len(records) == q.Limit {
		page.Next = records[len(records)-1].ID.String()
	}
	return page, nil
}

// Show tells all of a record. Of one that is gone the trail is left.
func (l *Local) Show(ctx context.Context, text string) (Shown, error) {
	id, err := idOf(text)
	if err != nil {
		return Shown{}, err
	}
	rec, trail, err := l.inspect(ctx, id)
	if err != nil {
		return Shown{}, err
	}
	s := Shown{
		Key: keyOf(id, &rec), Steps: stepNames(rec.Steps), Request: rec.Request != nil,
		LastStatus: statusOf(rec.Last), AnswerStatus: statusOf(rec.Answer),
		LastBytes: len(rec.Last), AnswerBytes: len(rec.Answer),
		Sealed: umavez.IsSealed(rec.Last) || umavez.IsSealed(rec.Answer),
		Trail:  make([]Entry, len(trail)),
	}
	s.Why, s.WhatToDo = rec.Explain()
	if rec.Unreadable != nil {
		s.Unreadable = said(rec.Unreadable)
	}
	now := l.Now()
	for i := range trail {
		s.Trail[i] = entryOf(&trail[i], now)
	}
	return s, nil
}

// inspect reads a record. One that left nothing behind is not found.
func (l *Local) inspect(ctx context.Context, id umavez.ID) (umavez.Record, []umavez.AuditEntry, error) {
	rec, trail, err := l.Engine.Inspect(ctx, id)
	if err != nil {
		return rec, nil, l.fault("the store did not give the record", err)
	}
	if rec.State == umavez.Vacant && len(trail) == 0 {
		return rec, nil, faultf(CodeNotFound, "%v: there is no such record: it was never claimed, was released, or is gone", id)
	}
	return rec, trail, nil
}

// stepNames are the names of steps. A step that was noted before it was sent has
// a NUL in front of its name.
func stepNames(steps []umavez.KeptStep) []string {
	names := make([]string, len(steps))
	for i, s := range steps {
		names[i] = s.Name
		if mark, ok := strings.CutPrefix(s.Name, "\x00"); ok {
			names[i] = mark
		}
	}
	return names
}

// statusOf is the status of a kept HTTP answer, or 0: an engine keeps any bytes.
func statusOf(answer []byte) int {
	var a umavezhttp.Answer
	if len(answer) == 0 || a.UnmarshalBinary(answer) != nil {
		return 0
	}
	return a.Status
}

// purgeBatch rows are dropped at a time, as the engine does, and purgeBatches of
// that before somebody is told: some seconds on a slow disk.
const (
	purgeBatch   = 500
	purgeBatches = 20
)

// Purge drops what is over.
func (l *Local) Purge(ctx context.Context) (Purged, error) {
	purger, ok := l.Store.(umavez.Purger)
	if !ok {
		return Purged{}, faultf(CodeNotOffered, "this store drops by itself what is over")
	}
	var p Purged
	for range purgeBatches {
		n, err := purger.Purge(ctx, purgeBatch)
		p.Rows += n
		if err != nil {
			return p, l.fault("the store did not purge", err)
		}
		if n < purgeBatch {
			return p, nil
		}
	}
	p.More = true
	return p, nil
}
