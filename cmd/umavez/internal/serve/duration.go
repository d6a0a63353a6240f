package serve

import (
	"fmt"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// Duration is a time.Duration as settings spell it: "15s", "1h30m". It is a
// type of its own so that a bad one in the file is an error that names its line.
type Duration time.Duration

// ParseDuration reads a flag or a variable.
func ParseDuration(text string) (Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration such as 15s or 2m", text)
	}
	return Duration(d), nil
}

// UnmarshalYAML reads a scalar of the file.
func (d *Duration) UnmarshalYAML(node ast.Node) error {
	scalar, ok := node.(*ast.StringNode)
	if !ok {
		return lineErrorf(node, "%q is not a duration such as 15s or 2m", node.GetToken().Value)
	}
	v, err := ParseDuration(scalar.Value)
	if err != nil {
		return lineErrorf(node, "%v", err)
	}
	*d = v
	return nil
}

// String spells the duration as time.Duration does.
func (d Duration) String() string { return time.Duration(d).String() }
