// Package wire holds what the two ends of a connection must agree on: the names
// of headers (header.go), how a key (key.go) and a token (token.go) are spelled,
// which answers are streams (stream.go), and what kinds of refusals there are
// (problem.go). It imports nothing of this module, and umavezhttp and proxy
// import it, so that a word on the wire is written once.
package wire
