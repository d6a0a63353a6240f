package memstore

import "github.com/umavez/umavez"

// notDue is the place of a row that waits for no purge: a running or lost one.
const notDue = -1

// dueHeap holds the rows of a shard that will be purged some day, the one that
// is due first on top. Rows know their place in it, so that a row that leaves
// or moves costs a few comparisons, and nobody ever walks through all rows.
type dueHeap []*resident

// dueAt returns when the next part of the row is over, as [umavez.Row.Purge]
// has it: the answer of a done row after its retention, then the row after its
// tombstone; a released row after its time. ok is false for running and lost
// rows, which never go.
func (r *resident) dueAt() (at umavez.Instant, ok bool) {
	switch r.phase {
	case umavez.PhaseVacant:
		return r.until, true
	case umavez.PhaseDone:
		if r.answer != nil {
			return r.until, true
		}
		return max(r.until, r.gone), true
	}
	return 0, false
}

// place puts a row where it belongs after a change, in or out.
func (h *dueHeap) place(r *resident) {
	_, due := r.dueAt()
	switch {
	case due && r.at == notDue:
		r.at = int32(len(*h)) // a shard never holds 2³¹ rows
		*h = append(*h, r)
		h.up(int(r.at))
	case due:
		h.down(h.up(int(r.at)))
	case r.at != notDue:
		h.remove(r)
	}
}

// remove takes a row out.
func (h *dueHeap) remove(r *resident) {
	i, last := int(r.at), len(*h)-1
	h.swap(i, last)
	(*h)[last] = nil
	*h = (*h)[:last]
	r.at = notDue
	if i < last {
		h.down(h.up(i))
	}
}

// top returns the row that is due first, if it is due by now; else nil.
func (h dueHeap) top(now umavez.Instant) *resident {
	if len(h) == 0 {
		return nil
	}
	if at, _ := h[0].dueAt(); now < at {
		return nil
	}
	return h[0]
}

// up moves the row at i towards the top until it is in order, and returns its place.
func (h dueHeap) up(i int) int {
	for i > 0 {
		parent := (i - 1) / 2
		if !h.less(i, parent) {
			break
		}
		h.swap(i, parent)
		i = parent
	}
	return i
}

// down moves the row at i away from the top until it is in order.
func (h dueHeap) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if right := child + 1; right < len(h) && h.less(right, child) {
			child = right
		}
		if !h.less(child, i) {
			return
		}
		h.swap(i, child)
		i = child
	}
}

func (h dueHeap) less(i, j int) bool {
	a, _ := h[i].dueAt()
	b, _ := h[j].dueAt()
	return a < b
}

func (h dueHeap) swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = int32(i), int32(j)
}
