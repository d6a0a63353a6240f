package groupcommit

// list is a queue that a call can leave from the middle at once: a caller whose
// context ends takes its operation, and the memory it holds, with it. The links
// are in the calls, so that waiting allocates nothing.
type list[O Op] struct {
	first, last *call[O]
	len         int
}

func (l *list[O]) push(c *call[O]) {
	c.list, c.prev, c.next = l, l.last, nil
	if l.last == nil {
		l.first = c
	} else {
		l.last.next = c
	}
	l.last = c
	l.len++
}

func (l *list[O]) remove(c *call[O]) {
	if c.prev == nil {
		l.first = c.next
	} else {
		c.prev.next = c.next
	}
	if c.next == nil {
		l.last = c.prev
	} else {
		c.next.prev = c.prev
	}
	c.list, c.prev, c.next = nil, nil, nil
	l.len--
}
