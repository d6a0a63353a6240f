package umavez

import "context"

// slots bounds how much of something is done at once.
type slots chan struct{}

// try takes a slot if one is free.
func (s slots) try() bool {
	select {
	case s <- struct{}{}:
		return true
	default:
		return false
	}
}

// take waits for a free slot. It is false when ctx ends first.
func (s slots) take(ctx context.Context) bool {
	select {
	case s <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// give gives a slot back.
func (s slots) give() { <-s }
