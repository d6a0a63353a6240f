package keyring

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"time"
)

// Source says where a ring's text comes from: a file, or a command that prints
// it, such as a client of a secrets manager.
type Source struct {
	// File is the path of a file that nobody but its owner may read or write.
	File string
	// Command is a program and its arguments. No shell looks at them. Its output
	// is the text; it must end with exit status 0, within CommandTimeout.
	Command []string
	// Stderr gets what the command says on its standard error. Nil: nobody.
	Stderr io.Writer
	// AllowPlain takes what lies in the store in plain, for the time in which a
	// store that was not sealed becomes one that is: see [Ring.Open]. While it
	// is set, whoever can write to the store can put a text of their own there.
	AllowPlain bool
}

const (
	// MaxText is the longest text of a ring, in bytes: MaxKeys lines, and room
	// for comments.
	MaxText = 64 << 10
	// CommandTimeout bounds a command: a service that waits for its keys longer
	// has a secrets manager that is away, and should say so.
	CommandTimeout = 30 * time.Second
)

// Load makes a ring. No error of it shows anything of a key.
func Load(ctx context.Context, s Source) (*Ring, error) {
	var text []byte
	var err error
	switch {
	case (s.File == "") == (len(s.Command) == 0):
		return nil, errors.New("umavez: key ring: it comes from a file or from a command; exactly one must be named")
	case s.File != "":
		text, err = readFile(s.File)
	default:
		text, err = runCommand(ctx, s)
	}
	if err != nil {
		return nil, fmt.Errorf("umavez: key ring: %w", err)
	}
	defer clear(text)
	return Parse(text, s.AllowPlain)
}

// readFile looks at the open file, so that what was looked at is what is read.
func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was read; closing changes nothing
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file; name a command instead", name)
	case othersMay(info.Mode()):
		return nil, fmt.Errorf("%s has the mode %#o: others may get at it; chmod 600 it", name, info.Mode().Perm())
	}
	return readAll(f, name)
}

// othersMay reports whether the file is anybody's but its owner's. Windows knows
// no such bits: there a file's rights are the administrator's affair.
func othersMay(mode os.FileMode) bool { return runtime.GOOS != "windows" && mode.Perm()&0o077 != 0 }

func readAll(r io.Reader, from string) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, MaxText+1))
	if err == nil && len(text) > MaxText {
		err = fmt.Errorf("%s has more than %d bytes; that is no key ring", from, MaxText)
	}
	return text, err
}

func runCommand(ctx context.Context, s Source) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, CommandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.Command[0], s.Command[1:]...)
	out := &capped{}
	cmd.Stdout, cmd.Stderr = out, s.Stderr
	cmd.WaitDelay = time.Second // what the command has started may hold its output open
	// The command's arguments stay out of the errors: a token may be among them.
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("the command %s: %w", s.Command[0], context.Cause(ctx))
	case err != nil:
		return nil, fmt.Errorf("the command %s: %w", s.Command[0], err)
	case out.over:
		return nil, fmt.Errorf("the command %s printed more than %d bytes; that is no key ring", s.Command[0], MaxText)
	}
	return out.text.Bytes(), nil
}

// capped keeps the beginning of what a command prints, and reads the rest so
// that the command ends.
type capped struct {
	text bytes.Buffer
	over bool
}

// Write keeps what there is room for.
func (c *capped) Write(b []byte) (int, error) {
	room := MaxText - c.text.Len()
	if len(b) > room {
		c.over = true
		c.text.Write(b[:room])
		return len(b), nil
	}
	return c.text.Write(b)
}
