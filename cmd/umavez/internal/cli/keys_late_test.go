package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
)

// gate is an address that answers only once it is opened.
type gate struct {
	url     string
	entered chan struct{}
	open    chan struct{}
}

func newGate(t *testing.T) *gate {
	t.Helper()
	g := &gate{entered: make(chan struct{}, 10), open: make(chan struct{})}
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		g.entered <- struct{}{}
		<-g.open
	}))
	g.url = s.URL
	t.Cleanup(s.Close)
	return g
}

// TestLateOwnerContradictsSettlement: a process is stopped after its operation
// and before it saves the answer, past its lease. What it did is settled as what
// cannot happen, and then it goes on. Its word does not count, and it is put
// down: it is in the trail, in the counter that must stay at zero and, as an
// error, in the log.
func TestLateOwnerContradictsSettlement(t *testing.T) {
	g := newGate(t)
	s := newShop(t)
	first := s.p
	s.start([]string{holdAt + "=" + g.url}, "--lease", "1s")
	owner := s.p
	beside := []string{"--store", s.store}
	running := background(owner.URL+"/pagamentos", "late", "201")
	<-g.entered
	if err := owner.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	// A live lease is refused, and then it runs out.
	waitUntil(t, "the lease of a stopped process runs out", func() bool { return len(s.list(beside, "--state", "unknown")) == 1 })
	lost := s.only(beside, "--state", "unknown")
	if lost.Reason != "killed" || lost.Contradicted {
		t.Errorf("lost as %+v", lost)
	}
	s.must(beside, "settle", lost.ID, "--cannot-happen", "--force", "--who", "ana", "--reason", "not in the ledger")
	if err := owner.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	close(g.open)
	<-running // whatever its client is told

	for name, carrier := range map[string][]string{"store": beside, "admin": {"--admin", first.Admin, "--admin-token", s.token}} {
		text := s.must(carrier, "show", lost.ID)
		for _, want := range []string{
			"cannot-happen by ana", "lost (killed) → vacant", "not in the ledger",
			"contradicted by attempt ", "it has completed, and was settled as one that cannot happen",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: show lacks %q:\n%s", name, want, text)
			}
		}
		if e := s.shown(carrier, lost.ID).Trail; len(e) != 2 || e[0].Action != "cannot-happen" || e[1].Action != "contradicted" {
			t.Errorf("%s: the trail is %+v", name, e)
		}
	}
	metric := `umavez_contradicted_total{policy="opaque",route="POST /pagamentos"}`
	if got := metricsOf(t, owner.Admin)[metric]; got != "1" {
		t.Errorf("%s is %q, want 1", metric, got)
	}
	if got := metricsOf(t, first.Admin)[metric]; got != "0" {
		t.Errorf("%s of a process that saw nothing is %q", metric, got)
	}
	id, _, _ := strings.Cut(lost.ID, ".")
	if !strings.Contains(owner.Stderr(), "level=ERROR msg=contradicted id="+id) {
		t.Errorf("the log has no error that says so:\n%s", owner.Stderr())
	}
}

// TestLateOwnerAgrees: one that says what it was settled as is no contradiction.
func TestLateOwnerAgrees(t *testing.T) {
	g := newGate(t)
	s := newShop(t)
	s.start([]string{holdAt + "=" + g.url}, "--lease", "1s")
	beside := []string{"--store", s.store}
	running := background(s.p.URL+"/pagamentos", "late", "429")
	a := <-running // a release: nothing was held
	if a.status != 429 {
		t.Fatalf("%+v", a)
	}
	running = background(s.p.URL+"/pagamentos", "late", "201")
	<-g.entered
	if err := s.p.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "the lease runs out", func() bool { return len(s.list(beside, "--state", "unknown")) == 1 })
	if err := s.p.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	close(g.open)
	<-running
	k := s.only(beside)
	if k.State != "done" || k.Settled || k.Contradicted || len(s.shown(beside, k.ID).Trail) != 0 {
		t.Errorf("a late owner that nobody had settled: %+v", k)
	}
	if got := metricsOf(t, s.p.Admin)[`umavez_contradicted_total{policy="opaque",route="POST /pagamentos"}`]; got != "0" {
		t.Errorf("counted as a contradiction: %s", got)
	}
	s.refuses(1, "its own attempt completed it", beside, "settle", k.ID, "--cannot-happen", "--force", "--reason", "r")
}

// TestLateOwnerThatNotices: an attempt that learns by its heartbeat that its key
// was settled is cut off before it could say otherwise. That it was there is in
// the log, under the key's ID, and in a counter of its own.
func TestLateOwnerThatNotices(t *testing.T) {
	b := newBank(t, true)
	s := &shop{t: t, url: b.URL, store: sqliteFile(t), token: secretFile(t, "token", shopToken)}
	s.start(nil, "--lease", "1s")
	beside := []string{"--store", s.store}
	running := background(s.p.URL+"/pagamentos", "late", "201")
	<-b.entered
	if err := s.p.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "the lease of a stopped process runs out", func() bool { return len(s.list(beside, "--state", "unknown")) == 1 })
	lost := s.only(beside, "--state", "unknown")
	s.must(beside, "settle", lost.ID, "--happened", "--status", "201", "--reason", "in the ledger")
	if err := s.p.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	<-running // cut off: its upstream has not answered
	id, _, _ := strings.Cut(lost.ID, ".")
	waitUntil(t, "the log names the key", func() bool { return strings.Contains(s.p.Stderr(), "level=WARN msg=lease_lost id="+id) })
	labels := `{policy="opaque",route="POST /pagamentos"}`
	got := metricsOf(t, s.p.Admin)
	if n := got["umavez_lease_lost_total"+labels]; n != "1" && n != "2" { // when it notices, and when it ends
		t.Errorf("lease_lost is counted %q times", n)
	}
	if n := got["umavez_contradicted_total"+labels]; n != "0" || len(s.shown(beside, lost.ID).Trail) != 1 {
		t.Errorf("it is counted as a contradiction %q times; the trail is %+v", n, s.shown(beside, lost.ID).Trail)
	}
}
