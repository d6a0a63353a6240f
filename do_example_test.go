package umavez_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
)

// A queue delivers a message again when its consumer was slow to confirm it; the
// message's ID is the key. What the function returns says what is known. The
// consumer confirms a message that has an answer, leaves one of which nothing was
// done for later, and sets one aside whose outcome is unknown: somebody has to look.
func ExampleDo_errors() {
	engine, err := umavez.New(memstore.New(memstore.Options{}), umavez.Options{})
	if err != nil {
		panic(err)
	}
	defer engine.Close(context.Background())
	for _, answer := range []error{
		umavez.Final(errors.New("the card was refused")),
		umavez.NotDone(errors.New("the gateway cannot be reached")),
		errors.New("the connection broke after the request was sent"),
	} {
		op := umavez.Operation{Key: umavez.Key{Scope: umavez.Scope{Namespace: "payments", Principal: "queue"}, Name: answer.Error()}}
		runs := 0
		var last error
		for range 2 {
			_, last = umavez.Do(context.Background(), engine, op, func(context.Context) (string, error) {
				runs++
				return "", answer
			})
		}
		_, final := errors.AsType[*umavez.FinalError](last)
		_, unknown := errors.AsType[*umavez.OutcomeUnknownError](last)
		fmt.Printf("runs %d, final %t, unknown %t\n", runs, final, unknown)
	}
	// Output:
	// runs 1, final true, unknown false
	// runs 2, final false, unknown false
	// runs 1, final false, unknown true
}
