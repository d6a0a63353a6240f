package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/umavez/umavez/cmd/umavez/internal/child"
	"github.com/umavez/umavez/cmd/umavez/internal/keys"
)

// shop is a serve that runs on a file, in front of an upstream that answers with
// the status that it is sent, and the two ways to its keys.
type shop struct {
	t     *testing.T
	p     *child.Process
	url   string
	store string
	token string // the file
	// charges counts what reached the upstream.
	charges chan string
}

const shopToken = "s3cret-token-0123456789"

// newShop starts one.
func newShop(t *testing.T, more ...string) *shop {
	t.Helper()
	s := &shop{t: t, store: sqliteFile(t), charges: make(chan string, 1000)}
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		s.charges <- string(body)
		status, err := strconv.Atoi(string(body))
		if err != nil {
			status = http.StatusCreated
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "s3cret-answer of upstream")
	}))
	t.Cleanup(up.Close)
	s.token = secretFile(t, "token", shopToken)
	s.url = up.URL
	s.start(nil, more...)
	return s
}

// start starts serve on the shop's file; another one may be running.
func (s *shop) start(env []string, more ...string) {
	s.t.Helper()
	args := append([]string{
		"--upstream", s.url, "--route", "POST /pagamentos", "--principal", "none", "--store", s.store,
		"--admin-token", s.token, "--log-level", "debug",
	}, more...)
	s.p = startEnv(s.t, env, args...)
}

// mustNotStart starts serve in a process of its own, which must end before it is
// ready, with a status and words on why.
func mustNotStart(t *testing.T, status int, says string, args ...string) {
	t.Helper()
	args = append([]string{"serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"}, args...)
	p, err := child.Start(child.Command{Path: os.Args[0], Args: args, Env: []string{asProgram}})
	if err == nil {
		p.Kill()
		t.Errorf("umavez %s started:\n%s", strings.Join(args, " "), p.Stderr())
	} else if !strings.Contains(err.Error(), fmt.Sprintf("ended with status %d ", status)) || !strings.Contains(err.Error(), says) {
		t.Errorf("umavez %s: %v\nwant status %d and %q", strings.Join(args, " "), err, status, says)
	}
}

// secretFile is a file that its owner alone may read.
func secretFile(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// carriers are the flags of the two ways to the keys.
func (s *shop) carriers() map[string][]string {
	return map[string][]string{
		"store": {"--store", s.store},
		"admin": {"--admin", s.p.Admin, "--admin-token", s.token},
	}
}

// pay makes an attempt that is answered with a status.
func (s *shop) pay(key, status string) answer {
	s.t.Helper()
	return mustPost(s.t, s.p.URL+"/pagamentos", key, status)
}

// must runs a keys command that must end well, and returns what it prints.
func (s *shop) must(carrier []string, args ...string) string {
	s.t.Helper()
	status, stdout, stderr := run(append(append([]string{"keys"}, args...), carrier...)...)
	if status != 0 {
		s.t.Fatalf("umavez keys %s: status %d, %s", strings.Join(args, " "), status, stderr)
	}
	return stdout
}

// refuses runs a keys command that must end with a status and say something.
func (s *shop) refuses(want int, says string, carrier []string, args ...string) {
	s.t.Helper()
	status, stdout, stderr := run(append(append([]string{"keys"}, args...), carrier...)...)
	if status != want || stdout != "" || !strings.HasPrefix(stderr, "umavez: ") || !strings.Contains(stderr, says) {
		s.t.Errorf("umavez keys %s: status %d, stdout %q, stderr\n%s\nwant status %d and %q", strings.Join(args, " "), status, stdout, stderr, want, says)
	}
}

// list returns what list --json prints.
func (s *shop) list(carrier []string, args ...string) (all []keys.Key) {
	s.t.Helper()
	for line := range strings.Lines(s.must(carrier, append([]string{"list", "--json"}, args...)...)) {
		var k keys.Key
		if err := json.Unmarshal([]byte(line), &k); err != nil {
			s.t.Fatalf("%v: %s", err, line)
		}
		all = append(all, k)
	}
	return all
}

// only returns the one key that a list has.
func (s *shop) only(carrier []string, args ...string) keys.Key {
	s.t.Helper()
	all := s.list(carrier, args...)
	if len(all) != 1 {
		s.t.Fatalf("list %v: %+v, want one key", args, all)
	}
	return all[0]
}

// shown returns what show --json prints.
func (s *shop) shown(carrier []string, args ...string) (k keys.Shown) {
	s.t.Helper()
	if err := json.Unmarshal([]byte(s.must(carrier, append([]string{"show", "--json"}, args...)...)), &k); err != nil {
		s.t.Fatal(err)
	}
	return k
}
