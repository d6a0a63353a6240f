package killtable

import (
	"context"
	"errors"
	"fmt"

	"github.com/umavez/umavez"
)

// Effect is what the foreign system does. key is the derived key that it is asked
// with; empty when the operation gives none. It must outlive the process.
type Effect func(ctx context.Context, key string) error

// Course is one way through an operation: its policy, and how it ends.
type Course struct {
	Name   string
	Policy umavez.Policy
	// NoKeys: the foreign system honours none.
	NoKeys bool
	// Ends says how: it completes, returns an error, or says that nothing was done.
	Ends Ending
}

// Ending is how an operation ends when its process lives.
type Ending uint8

// The endings.
const (
	Completes Ending = iota
	Fails
	IsNotDone
)

// steps are those of a stepped course.
var steps = []string{"reservar", "cobrar"}

// answer is what every course comes to when it completes.
const answer = "aprovado"

var errFailed = errors.New("umavez: killtable: it failed")

// Run runs the course's operation once for the key, in this process. The second
// attempt of a course that ends otherwise completes: its author has learned.
func (c Course) Run(ctx context.Context, e *umavez.Engine, p *Process, key string, effect Effect) (umavez.Result[string], error) {
	op := umavez.Operation{Key: umavez.Key{Name: key}, Policy: c.Policy, Route: c.Name}
	return umavez.Do(ctx, e, op, func(ctx context.Context) (string, error) {
		ends := c.Ends
		if p.DiesAt == "" {
			ends = Completes
		}
		if ends == IsNotDone {
			return "", umavez.NotDone(errFailed)
		}
		if err := c.act(ctx, p, effect); err != nil {
			return "", err
		}
		if ends == Fails {
			return "", errFailed
		}
		return answer, nil
	})
}

// act has the effects: two steps, or one plain call.
func (c Course) act(ctx context.Context, p *Process, effect Effect) error {
	if c.Policy != umavez.Stepped {
		return send(ctx, p, "effect", "", effect)
	}
	var options []umavez.StepOption
	if c.NoKeys {
		options = append(options, umavez.NoForeignKey())
	}
	for _, name := range steps {
		_, err := umavez.Step(ctx, name, func(ctx context.Context, key string) (string, error) {
			return "feito", send(ctx, p, fmt.Sprintf("effect %q", name), key, effect)
		}, options...)
		if err != nil {
			return err
		}
	}
	return nil
}

// send is an effect with a line before and after it.
func send(ctx context.Context, p *Process, name, key string, effect Effect) error {
	if err := p.at("before " + name); err != nil {
		return err
	}
	if err := effect(ctx, key); err != nil {
		return err
	}
	return p.at("after " + name)
}
