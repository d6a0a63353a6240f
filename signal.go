package umavez

// signal wakes those who wait for something to change. It has a channel only
// while somebody waits, since mostly nobody does. The mutex of what changes
// guards it.
type signal struct{ changed chan struct{} }

// wait returns the channel that the next wake closes.
func (s *signal) wait() <-chan struct{} {
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.changed
}

// wake tells all who wait by now.
func (s *signal) wake() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}
