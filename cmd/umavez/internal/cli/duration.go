package cli

import (
	"errors"
	"reflect"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/umavez/umavez/cmd/umavez/internal/serve"
)

// decodeDuration reads a flag's or a variable's duration. The parser's own way
// says of a flag without a value that it expected value value.
func decodeDuration(ctx *kong.DecodeContext, target reflect.Value) error {
	token := ctx.Scan.Pop()
	if token.IsEOL() {
		return errors.New("missing value, expecting a duration such as 15s or 2m")
	}
	d, err := serve.ParseDuration(token.String())
	if err != nil {
		return err
	}
	target.Set(reflect.ValueOf(d))
	return nil
}

// short spells a duration as a person would type it: 24h, not 24h0m0s.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
