// Package killtable is the table of every line at which a process may die while
// it runs an operation: before and after each store call, and around each effect;
// and of what the next process must find and do then, for each policy. Tests of
// stores go through it with processes that are really killed.
//
// Start at table.go, which is the table; dying.go is the store whose process
// dies, and operation.go what it runs.
//
// The package imports nothing of this module but its root.
package killtable
