// Package keys is what an operator does with keys: list them, find out about
// one, settle or forget it. A [Desk] does it, and there are two: a [Local] one
// over a store that this process has opened, and a [Remote] one that asks the
// admin address of a running serve, where [NewHandler] has a Local one behind
// it. Both give the same documents (document.go) and the same errors (fault.go).
//
// Where to start reading: document.go for what is said, settle.go for what is
// changed and refused, admin.go for the admin API and token.go for who may use it.
package keys
