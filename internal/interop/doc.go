// Package interop holds no code: its tests put the middleware into other
// people's frameworks, as users have them. It is a module of its own so that
// nobody else gets those frameworks, and is never released.
package interop
