// Package browsertest holds no code: its tests look at the page of `umavez demo`
// with a real browser, and read what it says. It is a module of its own so that
// nobody else gets the library that drives the browser, and is never released.
//
// Where to start reading:
//
//   - story_test.go is what people do on the page, and what they must see;
//   - words_test.go is how the page says it, in each language;
//   - page_test.go reads and clicks the page, browser_test.go has the browser, and
//     demo_test.go the demo itself.
//
// `go test -update` writes the pictures of docs/img anew.
package browsertest
