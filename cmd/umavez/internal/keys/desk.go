package keys

import "context"

// Desk is where an operator asks and changes. Its errors are a [*Fault].
type Desk interface {
	// Find tells what a client's names are in the store. It does not tell
	// whether there is such a record.
	Find(ctx context.Context, n Names) (Found, error)
	// List returns a page of the keys that the filter wants, in the order of
	// their IDs. Its Keys may be fewer than Filter.Limit, and none, while Next
	// says that there are more.
	List(ctx context.Context, f Filter) (Page, error)
	// Show tells all of a key. id is with or without a fence.
	Show(ctx context.Context, id string) (Shown, error)
	// Settle makes a change, with its entry in the audit trail, or none: a
	// record that has moved since it was looked at is left as it is. The same
	// Settlement again is a no-op.
	Settle(ctx context.Context, c Change) (Changed, error)
	// Purge drops what is over, a bounded part at a time.
	Purge(ctx context.Context) (Purged, error)
}
