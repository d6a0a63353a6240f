// Package umavez makes an operation that must not happen twice safe to repeat.
//
// A client makes one key for each intent and sends it with every attempt. The
// [Engine] claims the key in a [Store] before the operation runs, keeps the
// answer, and gives that answer to every other attempt. An attempt that is lost
// in the middle is "outcome unknown", never permission to run again, unless the
// operation's [Policy] says what makes running again safe.
//
// Where to start reading:
//
//   - life.go is the life of a key: every transition, as one pure function over
//     what a store keeps for it (row.go);
//   - store.go is the contract of a store, and store/storetest tests it;
//   - engine.go, and the files it names, run operations: claim, run, complete;
//   - do.go is the shortest way to use it: [Do] protects any function;
//   - step.go takes an operation apart into steps that are not repeated;
//   - recovery.go is who looks after what was lost all the same, and manage.go
//     what people do about it; lifesettle.go is both as transitions;
//   - seal.go is encryption at rest, over any store.
//
// Package umavezhttp puts the engine in front of net/http handlers, and package
// proxy in front of an API in any language. This package imports neither
// net/http nor database/sql, and nothing of this module outside internal.
package umavez
