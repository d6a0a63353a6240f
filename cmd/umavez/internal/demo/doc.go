// Package demo shows what umavez is for: a payment API with and without it, in
// front of one card gateway, as processes that are really killed.
//
// Everything runs in a temporary folder on free ports of this machine: three
// processes of the program itself, started by its hidden command demo-part. They
// end with the process that started them, however that one ends.
//
// Where to start reading:
//
//   - part.go is what each of the processes does;
//   - world.go starts, kills and asks them;
//   - client.go is a client that repeats until it has an answer, and settle.go
//     what an operator does;
//   - story.go is the script: what happens to payments, in an order that a seed
//     decides; report.go counts what the cards were charged, and judges it.
package demo
