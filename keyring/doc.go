// Package keyring seals what a store keeps of operations: answers, the results
// of steps, requests, and the key of stored hashes. A [Ring] is a
// umavez.Sealer; hand it to the engine's options.
//
// A ring holds one or more keys. The first one seals, and all of them open, so
// that a key is changed in steps: put the new one second everywhere, then first,
// reseal, and take the old one away.
//
// parse.go reads the text that a ring is made of, source.go gets at that text,
// and ring.go seals. The package uses the standard library only, and nothing of
// ours: it knows keys and bytes, and not what they are of.
package keyring
