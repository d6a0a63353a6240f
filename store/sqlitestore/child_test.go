//go:build unix

package sqlitestore

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/umavez/umavez"
)

// This file is the second process: the test binary, started again with childVar
// set to the file's path. It takes orders as JSON, a line each, and answers each
// with a line.

const childVar = "UMAVEZ_SQLITE_CHILD"

// order is one line to the child.
type order struct {
	Do       string // claim, complete, abandon, step, get, look, settle, trail, race, load, pay, die, owe, go on, hold, let go
	Key      string
	Attempt  umavez.AttemptID
	Policy   umavez.Policy
	Lease    time.Duration
	TakeOver umavez.Fence
	Print    umavez.Fingerprint // claim
	Answer   []byte
	N        int  // race: keys; load: workers; pay: payments
	Start    bool // claim: and start it
	Most     int  // claim: the scope's bound

	Settlement umavez.Settlement // settle

	URL        string // pay: the gateway
	NoKey, Die bool   // pay: it honours no key; stop after the charge

	Course, Line string // die: of the kill table; owe: the way, and whether to send at once
}

// report is one line from the child.
type report struct {
	State    umavez.State
	Attempt  umavez.AttemptID
	Fence    umavez.Fence
	Answer   []byte
	Acquired bool
	Err      string
	Applied  string // of a StoreError

	Claimed, Completed string   // load: a key, once it was acknowledged
	Won                []string // race
	Trail              []umavez.AuditEntry
}

func child() {
	ctx := context.Background()
	s, err := Open(ctx, os.Getenv(childVar), Options{BusyTimeout: unhurried, batchTime: unhurried})
	out := &reporter{w: os.Stdout}
	if err != nil {
		out.send(report{Err: err.Error()})
		return
	}
	out.send(report{})
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var o order
		if err := json.Unmarshal(in.Bytes(), &o); err != nil {
			panic(err)
		}
		obey(ctx, s, o, out)
	}
	if err := s.Close(); err != nil {
		panic(err)
	}
}

// reporter writes whole lines, each with one system call: what the parent has
// read was acknowledged before the child was killed.
type reporter struct {
	mu sync.Mutex
	w  io.Writer
}

func (r *reporter) send(v report) {
	line, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, _ = r.w.Write(append(line, '\n'))
}

func obey(ctx context.Context, s *Store, o order, out *reporter) {
	id := idOf(o.Key)
	switch o.Do {
	case "claim":
		rec, acquired, err := s.Claim(ctx, id, umavez.ClaimRequest{
			Attempt: o.Attempt, Policy: o.Policy, Lease: o.Lease, TakeOver: o.TakeOver, Fingerprint: o.Print, MaxUnsettled: o.Most,
		})
		if acquired && o.Start {
			err = s.Started(umavez.Lease{ID: id, Attempt: o.Attempt})
		}
		out.send(reportOf(rec, acquired, err))
	case "complete":
		out.send(reportOf(umavez.Record{}, false,
			s.Complete(ctx, umavez.Lease{ID: id, Attempt: o.Attempt}, o.Answer, keep)))
	case "abandon":
		out.send(reportOf(umavez.Record{}, false,
			s.Abandon(ctx, umavez.Lease{ID: id, Attempt: o.Attempt}, umavez.ReasonStatus, o.Answer)))
	case "step":
		out.send(reportOf(umavez.Record{}, false,
			s.Checkpoint(ctx, umavez.Lease{ID: id, Attempt: o.Attempt}, "step", o.Answer)))
	case "get":
		rec, err := s.Get(ctx, id)
		out.send(reportOf(rec, false, err))
	case "look":
		out.send(reportOf(umavez.Record{}, false, s.Hold(ctx, id, o.TakeOver, o.Attempt, o.Lease)))
	case "settle":
		out.send(reportOf(umavez.Record{}, false, s.Settle(ctx, id, o.Settlement)))
	case "trail":
		trail, err := s.Trail(ctx, id)
		r := reportOf(umavez.Record{}, false, err)
		r.Trail = trail
		out.send(r)
	case "race":
		out.send(report{Won: race(ctx, s, o.N)})
	case "load":
		load(ctx, s, o.N, out)
	case "pay":
		pay(ctx, s, o, out)
	case "die":
		die(ctx, s, o)
	case "owe":
		owed = lateOwner(ctx, s, o, out)
	case "go on":
		close(owed.gate)
		owed.paid.Wait()
	case "hold":
		c, err := dial(ctx, s.writer.path, s.opt, writing)
		if err != nil {
			panic(err)
		}
		if _, err := c.exec(stBegin, 0); err != nil {
			panic(err)
		}
		held = c
		out.send(report{})
	case "let go":
		if err := held.close(); err != nil {
			panic(err)
		}
		out.send(report{})
	}
}

// held is the connection with which the child keeps the file's write lock.
var held *conn

// owed are the payments that the child has begun and not sent.
var owed *late

func reportOf(rec umavez.Record, acquired bool, err error) report {
	r := report{State: rec.State, Attempt: rec.Attempt, Fence: rec.Fence, Answer: rec.Answer, Acquired: acquired}
	if err != nil {
		r.Err, r.Applied = err.Error(), umavez.AppliedOf(err).String()
	}
	return r
}

// race claims n keys that everybody claims, sixteen callers at a time, and
// completes what it wins. It returns the keys it won.
func race(ctx context.Context, s *Store, n int) []string {
	var mu sync.Mutex
	var won []string
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			for k := range n {
				key := fmt.Sprint((k + w) % n) // not all in the same order
				req := request()
				_, acquired, err := s.Claim(ctx, idOf(key), req)
				if err != nil {
					panic(err)
				}
				if !acquired {
					continue
				}
				mu.Lock()
				won = append(won, key)
				mu.Unlock()
				l := umavez.Lease{ID: idOf(key), Attempt: req.Attempt}
				if err := s.Complete(ctx, l, []byte(key), keep); err != nil {
					panic(err)
				}
			}
		})
	}
	wg.Wait()
	return won
}

// load claims and completes keys of its own until the process is killed, and
// reports each acknowledgement.
func load(ctx context.Context, s *Store, workers int, out *reporter) {
	for w := range workers {
		go func() {
			for i := 0; ; i++ {
				key := fmt.Sprintf("%d/%d/%d", os.Getpid(), w, i)
				req := request()
				if _, acquired, err := s.Claim(ctx, idOf(key), req); err != nil || !acquired {
					panic(fmt.Sprint(acquired, err))
				}
				l := umavez.Lease{ID: idOf(key), Attempt: req.Attempt}
				if err := s.Started(l); err != nil {
					panic(err)
				}
				out.send(report{Claimed: key, Attempt: req.Attempt})
				if i%3 == 0 {
					continue // stays claimed
				}
				if err := s.Complete(ctx, l, []byte("answer to "+key), keep); err != nil {
					panic(err)
				}
				out.send(report{Completed: key})
			}
		}()
	}
	select {}
}

// process is a child, as its parent sees it.
type process struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// start runs a child on the file, with a command in front of it if given, and
// waits until it has opened the store.
func start(t testing.TB, path string, before ...string) *process {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := append(before, exe)
	p := &process{t: t, cmd: exec.Command(args[0], args[1:]...)}
	// The race detector would keep each child for a second at its end.
	p.cmd.Env = append(os.Environ(), childVar+"="+path, "GORACE=atexit_sleep_ms=0")
	p.cmd.Stderr = os.Stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewScanner(out)
	p.out.Buffer(nil, 4<<20)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	if r := p.read(); r.Err != "" {
		t.Fatalf("the second process could not open the store: %s", r.Err)
	}
	return p
}

func (p *process) tell(o order) {
	p.t.Helper()
	line, err := json.Marshal(o)
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		p.t.Fatal(err)
	}
}

func (p *process) read() report {
	p.t.Helper()
	if !p.out.Scan() {
		p.t.Fatalf("the second process said nothing: %v", p.out.Err())
	}
	return p.parse()
}

// parse reads the line that was scanned last.
func (p *process) parse() report {
	p.t.Helper()
	var r report
	if err := json.Unmarshal(p.out.Bytes(), &r); err != nil {
		p.t.Fatalf("%v: %s", err, p.out.Bytes())
	}
	return r
}

func (p *process) ask(o order) report {
	p.t.Helper()
	p.tell(o)
	return p.read()
}

// kill ends the process as a crash would.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// end lets the process close its store and go.
func (p *process) end() {
	p.t.Helper()
	_ = p.in.Close()
	if err := p.cmd.Wait(); err != nil {
		p.t.Errorf("the second process ended with %v", err)
	}
}
