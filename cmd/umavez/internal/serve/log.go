package serve

import (
	"io"
	"log/slog"
)

// newLogger writes to w as the settings say. No line at any level holds a key,
// a principal, a header or a body; a record's ID names a request to those who
// know its key.
func (c Config) newLogger(w io.Writer) *slog.Logger {
	opts := &slog.HandlerOptions{Level: c.LogLevel}
	if c.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}
