package proxy

import (
	"errors"
	"fmt"
	"strings"
	"text/template/parse"
)

// A form is a text with blanks, in the syntax of text/template and with nothing
// of it but values:
//
//	/charges?reference={{.Key}}&step={{derivedKey "charge"}}
//
// There is no branch, loop, pipe or variable, so where each value will stand is
// known when the form is read, and so is how it has to be spelled there.
type form []piece

// piece is literal text, or a blank.
type piece struct {
	text  string
	blank *blank // nil: text
}

// blank is a value that is filled in, and the place where it stands.
type blank struct {
	from  origin
	arg   string   // of derivedKey, env
	path  []string // of field and response: a JSON pointer, taken apart
	shown string   // as it was written, for errors
	at    place
}

// origin says where a value comes from.
type origin uint8

const (
	fromKey       origin = iota // .Key: the client's key
	fromSentKey                 // .SentKey: the key as the upstream got it in its header
	fromID                      // .ID: the record's name, in hexadecimal
	fromRoute                   // .Route: the route's name
	fromPrincipal               // .Principal: the caller
	fromDerived                 // derivedKey "STEP"
	fromField                   // field "/POINTER": of the kept request's body
	fromResponse                // response "/POINTER": of the foreign system's answer
	fromEnv                     // env "NAME": a variable of the process
)

// plain are the values without an argument, and called those with one.
var (
	plain = map[string]origin{
		"Key": fromKey, "SentKey": fromSentKey, "ID": fromID, "Route": fromRoute, "Principal": fromPrincipal,
	}
	called = map[string]origin{
		"derivedKey": fromDerived, "field": fromField, "response": fromResponse, "env": fromEnv,
		"DerivedKey": fromDerived, "Field": fromField, "Response": fromResponse,
	}
)

// needsRequest reports whether the value is known only where requests are kept.
func (o origin) needsRequest() bool {
	return o == fromKey || o == fromSentKey || o == fromPrincipal || o == fromField
}

// ofCaller reports whether the value differs between two callers' equal keys. Of
// a field only its author can say so; whoever names one has thought of it.
func (o origin) ofCaller() bool {
	return o == fromPrincipal || o == fromID || o == fromDerived || o == fromField
}

var errOnlyValues = errors.New(`only values can stand in {{ }}: .Key, .SentKey, .ID, .Route, .Principal, ` +
	`derivedKey "STEP", field "/POINTER", response "/POINTER" or env "NAME"`)

// parseForm reads a form. Its blanks have no place yet.
func parseForm(text string) (form, error) {
	functions := make(map[string]any, len(called))
	for name := range called {
		functions[name] = true // parse only looks whether they are there
	}
	trees, err := parse.Parse("", text, "", "", functions)
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "template: :"))
	}
	tree := trees[""]
	if len(trees) != 1 || tree == nil || tree.Root == nil {
		return nil, errOnlyValues
	}
	var f form
	for _, node := range tree.Root.Nodes {
		switch n := node.(type) {
		case *parse.TextNode:
			f = append(f, piece{text: string(n.Text)})
		case *parse.ActionNode:
			b, err := parseBlank(n.Pipe)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", n, err)
			}
			b.shown = n.String()
			f = append(f, piece{blank: b})
		default:
			return nil, fmt.Errorf("%s: %w", n, errOnlyValues)
		}
	}
	return f, nil
}

func parseBlank(pipe *parse.PipeNode) (*blank, error) {
	if len(pipe.Decl) > 0 || len(pipe.Cmds) != 1 {
		return nil, errOnlyValues
	}
	args := pipe.Cmds[0].Args
	var name string
	switch head := args[0].(type) {
	case *parse.FieldNode:
		if len(head.Ident) != 1 {
			return nil, errOnlyValues
		}
		name = head.Ident[0]
	case *parse.IdentifierNode:
		name = head.Ident
	default:
		return nil, errOnlyValues
	}
	if from, ok := plain[name]; ok && len(args) == 1 {
		return &blank{from: from}, nil
	}
	from, ok := called[name]
	if !ok || len(args) != 2 {
		return nil, errOnlyValues
	}
	arg, ok := args[1].(*parse.StringNode)
	if !ok || arg.Text == "" && from != fromField && from != fromResponse {
		return nil, fmt.Errorf("%s needs a text in quotes", name)
	}
	b := &blank{from: from, arg: arg.Text}
	if from != fromField && from != fromResponse {
		return b, nil
	}
	var err error
	b.path, err = parsePointer(arg.Text)
	return b, err
}

// blanks returns the values of the form, in order.
func (f form) blanks() []*blank {
	var all []*blank
	for i := range f {
		if f[i].blank != nil {
			all = append(all, f[i].blank)
		}
	}
	return all
}

// literal returns the text of a form without blanks; ok is false when it has some.
func (f form) literal() (text string, ok bool) {
	for _, p := range f {
		if p.blank != nil {
			return "", false
		}
		text += p.text
	}
	return text, true
}

// sampled returns the form with each blank filled in by sample.
func (f form) sampled(sample func(*blank) string) string {
	var b strings.Builder
	for _, p := range f {
		if p.blank == nil {
			b.WriteString(p.text)
			continue
		}
		b.WriteString(sample(p.blank))
	}
	return b.String()
}

// fill returns the form with its values.
func (f form) fill(from *facts) (string, error) {
	var b strings.Builder
	for _, p := range f {
		if p.blank == nil {
			b.WriteString(p.text)
			continue
		}
		text, err := p.blank.spell(from)
		if err != nil {
			return "", fmt.Errorf("%s: %w", p.blank.shown, err)
		}
		b.WriteString(text)
	}
	return b.String(), nil
}
