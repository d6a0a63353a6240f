package umavez

import "context"

// Owned is for code that is about to send something that cannot be taken back,
// on behalf of the operation that ctx runs under. It is nil as long as the
// attempt holds its lease, by this process's clocks. Else: ErrLeaseRanOut;
// ErrLeaseLost when its record went to others; ErrEnded; ErrNoAttempt. After any
// of these nothing may be sent: others may have found out that nothing was, and
// settled it so. [Step] looks by itself.
//
// It cannot close the moment between the look and the send: a process that is
// stopped there sends when it goes on. For that there is the quiet time of a
// settlement, and a foreign system that runs each derived key once.
func Owned(ctx context.Context) error {
	a := FromContext(ctx)
	switch {
	case a == nil:
		return ErrNoAttempt
	case a.hasEnded():
		return ErrEnded
	case a.leaseLeft() <= 0:
		return ErrLeaseRanOut
	}
	return context.Cause(a.ctx) //nolint:contextcheck // ctx is made of it, and may have ended by itself
}
