package demo

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/umavez/umavez/cmd/umavez/internal/child"
	"github.com/umavez/umavez/cmd/umavez/internal/keys"
	"github.com/umavez/umavez/examples/pagamentos/gateway"
	"github.com/umavez/umavez/keyring"
)

// Side is one of the two APIs, and its account at the gateway.
type Side string

// The sides.
const (
	Unprotected Side = "unprotected"
	Protected   Side = "protected"
)

// Sides are both, in the order in which they are shown.
var Sides = []Side{Unprotected, Protected}

// Program is how this program is started again as one of its parts: the part's
// specification follows Args.
type Program struct {
	Path string
	Args []string
	Env  []string
}

// world is a gateway and the two APIs in front of it, in a folder of their own.
type world struct {
	program     Program
	dir         string
	withoutKeys bool
	times       times
	http        *http.Client
	token       string

	// alive is the end of a pipe that the processes read from: it closes with
	// this process.
	alive, theirs *os.File

	gateway *child.Process
	mu      sync.Mutex
	apis    map[Side]*child.Process
}

// newWorld starts everything. The folder is made and goes with close.
func newWorld(p Program, withoutKeys bool, t times) (_ *world, err error) {
	w := &world{
		program: p, withoutKeys: withoutKeys, times: t, apis: make(map[Side]*child.Process),
		// A connection each: none is left over from a process that was killed.
		http: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: clientTimeout},
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	if w.dir, err = os.MkdirTemp("", "umavez-demo-"); err != nil {
		return w, err
	}
	if w.theirs, w.alive, err = os.Pipe(); err != nil {
		return w, err
	}
	line, err := keyring.Generate("demo")
	if err != nil {
		return w, err
	}
	w.token = rand.Text()
	for name, text := range map[string]string{fileRing: line, fileToken: w.token} {
		if err = os.WriteFile(filepath.Join(w.dir, name), []byte(text+"\n"), 0o600); err != nil {
			return w, err
		}
	}
	if w.gateway, err = w.run(Part{Role: roleGateway}); err != nil {
		return w, err
	}
	for _, s := range Sides {
		if err = w.start(s); err != nil {
			return w, err
		}
	}
	return w, nil
}

func (w *world) run(p Part) (*child.Process, error) {
	p.Dir, p.WithoutKeys, p.Times = w.dir, w.withoutKeys, w.times
	spec, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	return child.Start(child.Command{
		Path: w.program.Path, Args: append(w.program.Args[:len(w.program.Args):len(w.program.Args)], string(spec)),
		Env: w.program.Env, Stdin: w.theirs,
	})
}

// start starts the API of a side, again if it was killed.
func (w *world) start(s Side) error {
	role := roleUnprotected
	if s == Protected {
		role = roleProtected
	}
	p, err := w.run(Part{Role: role, Gateway: w.account(s)})
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.apis[s] = p
	return nil
}

// kill kills the API of a side, by SIGKILL.
func (w *world) kill(s Side) { w.api(s).Kill() }

// runs reports whether a side's API runs.
func (w *world) runs(s Side) bool {
	select {
	case <-w.api(s).Ended():
		return false
	default:
		return true
	}
}

func (w *world) api(s Side) *child.Process {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.apis[s]
}

// url is where a side's API is, or was when it was killed.
func (w *world) url(s Side) string { return w.api(s).URL }

// account is where the gateway has a side's account.
func (w *world) account(s Side) string { return w.gateway.URL + "/" + string(s) }

// desk is where an operator looks into the protected API's keys.
func (w *world) desk() (*keys.Remote, error) { return keys.NewRemote(w.url(Protected), w.token) }

// close ends all and removes the folder.
func (w *world) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.apis {
		p.Kill()
	}
	if w.gateway != nil {
		w.gateway.Kill()
	}
	var errs []error
	for _, end := range []*os.File{w.alive, w.theirs} {
		if end != nil {
			errs = append(errs, end.Close())
		}
	}
	if w.dir != "" {
		errs = append(errs, os.RemoveAll(w.dir))
	}
	return errors.Join(errs...)
}

// ask sends a request to a side's account at the gateway.
func (w *world) ask(ctx context.Context, s Side, method, path string, body, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, w.account(s)+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	res, err := w.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	reply, err := io.ReadAll(res.Body)
	switch {
	case err != nil:
		return err
	case res.StatusCode >= 400:
		return fmt.Errorf("umavez: demo: the gateway answered %s %s with %d: %s", method, path, res.StatusCode, reply)
	case into == nil:
		return nil
	}
	return json.Unmarshal(reply, into)
}

// fault has the next charge of a side meet a fault.
func (w *world) fault(ctx context.Context, s Side, f gateway.Fault) error {
	return w.ask(ctx, s, http.MethodPost, "/falhas", map[string]any{"falha": f}, nil)
}

// letGo lets go of what the gateway holds of a side.
func (w *world) letGo(ctx context.Context, s Side) error {
	return w.ask(ctx, s, http.MethodPost, "/soltar", nil, nil)
}

// known is what the gateway knows of a key of a side, or of all.
func (w *world) known(ctx context.Context, s Side, key string) (k gateway.Known, err error) {
	return k, w.ask(ctx, s, http.MethodGet, "/cobrancas?chave="+url.QueryEscape(key), nil, &k)
}

// waitHeld waits until the gateway holds a charge of a side.
func (w *world) waitHeld(ctx context.Context, s Side) error {
	return until(ctx, func() (bool, error) {
		var state gateway.State
		err := w.ask(ctx, s, http.MethodGet, "/falhas", nil, &state)
		return state.Held > 0, err
	})
}

// waitStill waits until nothing of a side is on its way through the gateway.
func (w *world) waitStill(ctx context.Context, s Side) error {
	return until(ctx, func() (bool, error) {
		k, err := w.known(ctx, s, "")
		return k.UnderWay == 0, err
	})
}

// lookEvery is the pause between two looks at another process.
const lookEvery = 5 * time.Millisecond

// until looks until something is so.
func until(ctx context.Context, so func() (bool, error)) error {
	for {
		if yes, err := so(); yes || err != nil {
			return err
		}
		if err := pause(ctx, lookEvery); err != nil {
			return err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
