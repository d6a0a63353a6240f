package serve

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// maxFile bounds the settings file, so that a wrong path (a log, a database)
// is refused instead of read into memory. 1 MiB holds thousands of routes.
const maxFile = 1 << 20

// ReadFile reads settings from a YAML file. A field that does not exist, a
// field that stands twice, or a value of the wrong kind is a [*UsageError] that
// names the file and the line.
func ReadFile(path string) (Settings, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Settings{}, usagef("--config %s: %w", path, err)
	}
	if info.Size() > maxFile {
		return Settings{}, usagef("--config %s: %d bytes, at most %d are read", path, info.Size(), maxFile)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return Settings{}, usagef("--config %s: %w", path, err)
	}
	s, err := parseYAML(text)
	if err != nil {
		return Settings{}, yamlError(path, err)
	}
	return s, nil
}

func parseYAML(text []byte) (Settings, error) {
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return Settings{}, err
	}
	// The decoder reads the first document alone. What follows it would be
	// settings that somebody wrote and nobody applies.
	if len(file.Docs) > 1 {
		return Settings{}, lineErrorf(file.Docs[1].Body, "a second document; the settings are one")
	}
	var s Settings
	if err := yaml.UnmarshalWithOptions(text, &s, yaml.Strict()); err != nil {
		return Settings{}, err
	}
	return s, nil
}

// lineError is an error in a file, with its line.
type lineError struct {
	line int
	msg  string
}

func (e *lineError) Error() string { return fmt.Sprintf("line %d: %s", e.line, e.msg) }

func lineErrorf(node ast.Node, format string, args ...any) error {
	e := &lineError{line: 1, msg: fmt.Sprintf(format, args...)}
	if node != nil && node.GetToken() != nil {
		e.line = node.GetToken().Position.Line
	}
	return e
}

// yamlError spells an error as "file:line: message". The library's own text
// shows the source around the place, which is noise in a log and may hold more
// than its reader should see.
func yamlError(path string, err error) error {
	if le, ok := errors.AsType[*lineError](err); ok {
		return usagef("%s:%d: %s", path, le.line, le.msg)
	}
	var ye yaml.Error
	if errors.As(err, &ye) && ye.GetToken() != nil {
		// Lists are the one thing that the command line spells in another way.
		msg := strings.Replace(ye.GetMessage(), "where sequence is expected", "where a list is expected: write [ ] around it", 1)
		return usagef("%s:%d: %s", path, ye.GetToken().Position.Line, msg)
	}
	return usagef("%s: %w", path, err)
}
