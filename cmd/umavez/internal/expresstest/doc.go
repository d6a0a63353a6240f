// Package expresstest holds tests alone: a real Express server, which knows
// nothing of idempotency, with a real `umavez serve` in front of it. They hold
// docs/express.md to what it says.
//
// Where to start reading: story_test.go has the stories in which a payment could
// be made twice, world_test.go the processes they are played with, and
// row_test.go the rows of the page's table.
package expresstest
