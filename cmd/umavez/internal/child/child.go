// Package child runs a program that speaks umavez's ready line, "NAME: listening
// on URL", in a process of its own, so that tests can signal and kill it. The
// program is commonly the test binary itself, started again. It knows nothing of
// package testing.
package child

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"time"
)

// ReadyTimeout is how long a program may take until its ready line. It is long
// because tests run on busy machines, and only a hang ever waits for it.
const ReadyTimeout = 30 * time.Second

// Process is a program that runs, or has run.
type Process struct {
	// URL is where it listens for clients; Admin is its admin address, or empty.
	URL, Admin string

	cmd *exec.Cmd
	// ended is closed when the program has ended and its output is complete.
	ended chan struct{}

	mu     sync.Mutex
	stderr bytes.Buffer
}

// Command is what to run.
type Command struct {
	Path string   // the program
	Args []string // without its name
	Env  []string // added to this process's environment
	// Stdin is what the program reads. The other end of a pipe tells it when this
	// process has died. Nil: nothing.
	Stdin *os.File
}

var (
	readyLine = regexp.MustCompile(`^[a-z]+: listening on (\S+)`)
	adminLine = regexp.MustCompile(`msg=admin address=(\S+)`)
)

// Start runs the program and waits for its ready line. A program that ends
// before it gives an error that holds what it wrote.
func Start(c Command) (*Process, error) {
	p := &Process{cmd: exec.Command(c.Path, c.Args...), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), c.Env...)
	if c.Stdin != nil {
		p.cmd.Stdin = c.Stdin
	}
	pipe, err := p.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	ready := make(chan struct{})
	go p.read(pipe, ready)
	timeout := time.NewTimer(ReadyTimeout)
	defer timeout.Stop()
	select {
	case <-ready:
		return p, nil
	case <-p.ended:
		return nil, fmt.Errorf("%s ended with status %d before it was ready:\n%s", c.Path, p.cmd.ProcessState.ExitCode(), p.Stderr())
	case <-timeout.C:
		p.Kill()
		return nil, fmt.Errorf("%s was not ready in %v:\n%s", c.Path, ReadyTimeout, p.Stderr())
	}
}

// read keeps what the program writes, and sees the ready line in it.
func (p *Process) read(pipe io.Reader, ready chan<- struct{}) {
	lines := bufio.NewReader(pipe)
	waiting := true
	for {
		line, err := lines.ReadBytes('\n')
		p.mu.Lock()
		p.stderr.Write(line)
		p.mu.Unlock()
		if m := adminLine.FindSubmatch(line); m != nil && waiting {
			p.Admin = string(m[1])
		}
		if m := readyLine.FindSubmatch(line); m != nil && waiting {
			p.URL, waiting = string(m[1]), false
			close(ready)
		}
		if err != nil {
			break
		}
	}
	// Its error is the exit status, which ExitCode tells.
	_ = p.cmd.Wait()
	close(p.ended)
}

// Signal sends a signal.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// Kill ends the program with SIGKILL and waits for its end.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it may have ended by itself
	<-p.ended
}

// Ended is closed when the program has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// ExitCode waits for the end and returns the status, -1 for a signal's.
func (p *Process) ExitCode() int {
	<-p.ended
	return p.cmd.ProcessState.ExitCode()
}

// Stderr returns what the program has written so far.
func (p *Process) Stderr() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stderr.String()
}
