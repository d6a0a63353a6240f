package umavez

import "context"

// Sealer encrypts what a store keeps. Package keyring has one.
//
// Seal is deterministic: the same text with the same data gives the same bytes,
// for as long as the key in use stays the same, so that a store call that is
// repeated is the same call. data is authenticated with the text; Open of what
// was sealed with other data fails. So does Open of what lies there in plain,
// unless the sealer is made to take it. Errors show nothing of keys or texts.
//
// With a sealer the engine reads a record before it completes it: it may have been
// settled with the same answer in other bytes.
type Sealer interface {
	Seal(text, data []byte) ([]byte, error)
	Open(sealed, data []byte) ([]byte, error)
	// Stale reports whether what was sealed is in plain, or under another key
	// than the one in use.
	Stale(sealed []byte) bool
}

// Seals reports whether what records hold is sealed before it goes to the store.
func (e *Engine) Seals() bool { return e.opt.Sealer != nil }

// Rewriter is implemented by stores whose records can be sealed anew.
type Rewriter interface {
	// Rewrite hands the records after an ID, at most limit of them and in the
	// order of their IDs, to rewrite, and keeps what that returns: the same
	// record with other bytes in Answer, Last, Request and in the results of
	// Steps. It changes nothing else. It returns the last ID that it has seen;
	// the zero ID means that there are no more. An error of rewrite ends it, or
	// comes with the last ID; the record is left as it is.
	//
	// What is kept replaces just the bytes that rewrite was handed: no call on
	// the record comes between the two, or rewrite is called again with what is
	// there by then. Nothing that a Checkpoint, Complete or Abandon has written
	// is lost. rewrite may be called under the store's locks, and must not call
	// the store.
	Rewrite(ctx context.Context, after ID, limit int, rewrite func(ID, *Record) error) (last ID, err error)
	// RewriteSettings does the same with the hash keys of all namespaces.
	RewriteSettings(ctx context.Context, rewrite func(namespace string, s *Settings) error) error
}
