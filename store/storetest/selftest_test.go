package storetest

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// recorder is a test that may fail without anybody minding. It stands in for a
// *testing.T when a rule runs against a broken store.
type recorder struct {
	//nolint:containedctx // a test hands its context out, and so does what stands in for one
	ctx context.Context

	mu      sync.Mutex
	failed  bool
	skipped bool
	log     []string
}

func (r *recorder) Helper()                  {}
func (r *recorder) Context() context.Context { return r.ctx }

func (r *recorder) Logf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, fmt.Sprintf(format, args...))
}

func (r *recorder) Errorf(format string, args ...any) {
	r.Logf(format, args...)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = true
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Skipf(format string, args ...any) {
	r.Logf(format, args...)
	r.mu.Lock()
	r.skipped = true
	r.mu.Unlock()
	runtime.Goexit()
}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

// try runs one rule against a store, and returns what it did.
func try(t *testing.T, r rule, cfg Config) *recorder {
	t.Helper()
	rec := &recorder{ctx: t.Context()}
	opened := cfg.Open(t)
	done := make(chan struct{})
	go func() { // Fatalf and Skipf end the goroutine that they are called on
		defer close(done)
		r.run(rec, &fixture{tester: rec, real: t, cfg: cfg, opened: opened, store: opened.Store})
	}()
	<-done
	return rec
}

// TestRightStorePasses: the suite has nothing against a store with nothing
// wrong, opened in each way that a Config knows.
func TestRightStorePasses(t *testing.T) {
	t.Run("clock that is moved", func(t *testing.T) { Run(t, Config{Open: bend{}.open}) })
	t.Run("real time", func(t *testing.T) { Run(t, Config{Open: bend{}.openByRealTime}) })
}

// TestRulesAreNamedAndExplained: a name leads from a failure to its rule, and
// the reason says what is at stake.
func TestRulesAreNamedAndExplained(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range rules() {
		if seen[r.name] || !strings.Contains(r.name, "/") {
			t.Errorf("rule %q: its name is taken, or does not begin with what it is about", r.name)
		}
		seen[r.name] = true
		if len(r.why) < 40 {
			t.Errorf("rule %q: %q does not explain it", r.name, r.why)
		}
	}
}

// TestBrokenStoresFail proves for every flaw that the suite finds it, by the
// rule that is about it, and that the rule explains itself.
func TestBrokenStoresFail(t *testing.T) {
	table := map[string]rule{}
	for _, r := range rules() {
		table[r.name] = r
	}
	for _, flaw := range flaws() {
		t.Run(flaw.name, func(t *testing.T) {
			t.Parallel()
			for _, name := range flaw.breaks {
				r, ok := table[name]
				if !ok {
					t.Fatalf("there is no rule %q", name)
				}
				rec := try(t, r, Config{Open: flaw.bend().open, Seed: 1})
				if !rec.failed {
					t.Errorf("the rule %q holds on this store; it said %q", name, rec.log)
				} else if told := strings.Join(rec.log, "\n"); !strings.Contains(told, r.why) {
					t.Errorf("the rule %q failed without explaining itself: %s", name, told)
				}
			}
		})
	}
}

// TestEveryRuleCanFail: a rule that no flaw breaks may be one that checks
// nothing. Each rule must be named by a flaw above.
func TestEveryRuleCanFail(t *testing.T) {
	broken := map[string]bool{}
	for _, flaw := range flaws() {
		for _, name := range flaw.breaks {
			broken[name] = true
		}
	}
	for _, r := range rules() {
		if !broken[r.name] {
			t.Errorf("no flaw breaks the rule %q", r.name)
		}
	}
}
