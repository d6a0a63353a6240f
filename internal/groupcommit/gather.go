package groupcommit

import (
	"bytes"
	"cmp"
	"slices"
)

// gather takes the next batch off the queue and appends it to into, sorted by
// key. Called with mu held.
func (b *Batcher[O]) gather(into []*call[O]) []*call[O] {
	if b.alone.first != nil && (b.aloneNext || b.queue.first == nil) {
		// Turn about: a row of refused operations, each of which may wait for
		// a lock, does not keep everybody else waiting.
		b.aloneNext = false
		return append(into, b.take(b.alone.first))
	}
	b.aloneNext = true
	size := 0
	clear(b.inBatch)
	for c := b.queue.first; c != nil && len(into) < b.cfg.MaxRows; {
		next := c.next
		if len(into) > 0 && size+c.size > b.cfg.MaxBytes {
			break // in order of arrival: a large one is not overtaken for ever
		}
		if !b.secondOfKey(c) {
			size += c.size
			into = append(into, b.take(c))
		}
		c = next
	}
	slices.SortFunc(into, byKey[O])
	return into
}

// byKey orders a batch by key, and operations on one key by arrival. Two
// batches that take their row locks in one order cannot deadlock.
func byKey[O Op](x, y *call[O]) int {
	if c := bytes.Compare(x.key[:], y.key[:]); c != 0 {
		return c
	}
	return cmp.Compare(x.order, y.order)
}

// secondOfKey reports whether the batch has an operation on the call's key
// already, and that counts.
func (b *Batcher[O]) secondOfKey(c *call[O]) bool {
	if !b.cfg.OnePerKey {
		return false
	}
	if _, ok := b.inBatch[c.key]; ok {
		return true
	}
	b.inBatch[c.key] = struct{}{}
	return false
}

// take moves a call from its list into a flight.
func (b *Batcher[O]) take(c *call[O]) *call[O] {
	b.unqueue(c)
	c.state = inFlight
	return c
}

// unqueue takes a call off the list it waits in.
func (b *Batcher[O]) unqueue(c *call[O]) {
	if c.list == &b.queue {
		b.queueBytes -= c.size
	}
	c.list.remove(c)
}
