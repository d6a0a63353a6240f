package cli

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestWrongUsage: status 2, nothing on standard output, and a message that
// names the option and the value.
func TestWrongUsage(t *testing.T) {
	dir := t.TempDir()
	enough := []string{"serve", "--upstream", "http://127.0.0.1:1", "--route", "POST /a", "--principal", "none", "--store", "sqlite:" + filepath.Join(dir, "a.db")}
	yaml := filepath.Join(dir, "umavez.yaml")
	if err := os.WriteFile(yaml, []byte("upstream: http://a\nleese: 15s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	with := func(more ...string) []string { return append(append([]string{}, enough...), more...) }
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, `umavez: expected one of "serve", "keys", "namespace", "demo", "version"`},
		{[]string{"serv"}, `umavez: unexpected argument serv, did you mean "serve"?`},
		{[]string{"demonstrate"}, `umavez: unexpected argument demonstrate`},
		{[]string{"demo", "--script", "--seed", "one"}, "umavez: --seed: "},
		{[]string{"demo", "--seed", "1"}, "umavez: --seed: goes with --script"},
		{[]string{"serve"}, "umavez: --upstream URL is required\numavez: --principal is required: none, mtls, auth, header:NAME or jwt:ISS+SUB"},
		{enough[:5], "umavez: --principal is required"},
		{with("extra"), "umavez: unexpected argument extra"},
		{with("--nix"), "umavez: unknown flag --nix"},
		{with("--lease"), "umavez: --lease: missing value"},
		{with("--lease", "soon"), `umavez: --lease: "soon" is not a duration such as 15s or 2m`},
		{with("--lease", "10"), `umavez: --lease: "10" is not a duration such as 15s or 2m`},
		{with("--lease", "1ms"), "umavez: --lease 1ms: must be between"},
		{with("--ignore-case=perhaps"), `umavez: --ignore-case: bool value must be true, 1, yes, false, 0 or no but got "perhaps"`},
		{with("--store", "postgres://h/db"), "umavez: --store postgres:…: this program opens memory: or sqlite:FILE"},
		{with("--config", filepath.Join(dir, "none.yaml")), "umavez: --config " + filepath.Join(dir, "none.yaml") + ": "},
		{with("--config", yaml), "umavez: " + yaml + `:2: unknown field "leese"` + "\n"},
		{with("--principal", "header:X"), "umavez: --principal header:X: needs --trusted-proxy"},
		{with("--principal", "jwt:iss+sub"), "umavez: --principal jwt:iss+sub: needs --jwks"},
		{with("--principal", "auth"), "umavez: --principal auth: needs --auth-url"},
		{with("--principal", "mtls"), "umavez: --principal mtls: needs --client-ca"},
		{with("--tls-cert", yaml, "--tls-key", yaml), "umavez: --tls-cert " + yaml + ", --tls-key " + yaml + ": "},
		{[]string{"namespace"}, `umavez: expected "accept"`},
		{[]string{"namespace", "accept"}, "umavez: missing flags: --reason=TEXT"},
		{[]string{"namespace", "accept", "--reason", "x"}, "umavez: --principal is required"},
		{[]string{"namespace", "accept", "--reason", " ", "--principal", "none"}, "umavez: --reason: must say why"},
		{[]string{"namespace", "accept", "--reason", "x", "--principal", "none", "--store", "memory:"}, "umavez: --store memory:: keeps nothing to accept"},
		{[]string{"namespace", "accept", "--reason", "x", "--principal", "who"}, "umavez: --principal who: must be"},
		{[]string{"version", "now"}, "umavez: unexpected argument now"},
	} {
		status, stdout, stderr := run(c.args...)
		if status != 2 || stdout != "" || !strings.HasPrefix(stderr, c.want) {
			t.Errorf("umavez %s: status %d, stdout %q, stderr\n%s\nwant status 2 and stderr that begins with\n%s",
				strings.Join(c.args, " "), status, stdout, stderr, c.want)
		}
	}
}

// TestRoutesInConflict: what only the proxy can see is wrong usage too.
func TestRoutesInConflict(t *testing.T) {
	for want, routes := range map[string][]string{
		`umavez: the routes "POST /A" and "POST /a" match the same requests`:     {"POST /A", "POST /a"},
		`umavez: the routes "POST /a" and "POST /a/{$}" match the same requests`: {"POST /a", "POST /a/{$}"},
	} {
		args := []string{
			"serve", "--upstream", "http://127.0.0.1:1", "--principal", "none", "--store", "memory:",
			"--ignore-case", "--listen", "127.0.0.1:0", "--admin", "",
		}
		for _, route := range routes {
			args = append(args, "--route", route)
		}
		if status, _, stderr := run(args...); status != 2 || !strings.Contains(stderr, "\n"+want+"\n") {
			t.Errorf("%q: status %d, stderr\n%s\nwant 2 and\n%s", routes, status, stderr, want)
		}
	}
}

// TestVariables: a variable sets what its flag sets, and a flag wins over it.
// Its error names it.
func TestVariables(t *testing.T) {
	t.Setenv("UMAVEZ_PRINCIPAL", "header:X")
	t.Setenv("UMAVEZ_ROUTE", "POST /a;POST /a")
	t.Setenv("UMAVEZ_LEASE", "1ms")
	_, _, stderr := run("serve", "--lease", "2ms")
	for _, want := range []string{
		"umavez: --principal header:X: needs --trusted-proxy",
		`umavez: --route POST /a: pattern "POST /a" conflicts`,
		"umavez: --lease 2ms: must be between",
	} {
		if !strings.Contains(stderr, want) {
			t.Errorf("stderr lacks %q:\n%s", want, stderr)
		}
	}
	t.Setenv("UMAVEZ_LEASE", "soon")
	status, _, stderr := run("serve")
	if want := `umavez: --lease: "soon" is not a duration such as 15s or 2m (from envar UMAVEZ_LEASE="soon")`; status != 2 || !strings.HasPrefix(stderr, want) {
		t.Errorf("status %d, stderr %s, want 2 and %s", status, stderr, want)
	}
}

// TestVariableWinsOverFile holds the middle of the three sources.
func TestVariableWinsOverFile(t *testing.T) {
	yaml := filepath.Join(t.TempDir(), "umavez.yaml")
	if err := os.WriteFile(yaml, []byte("lease: 3ms\nwait: 1h\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("UMAVEZ_CONFIG", yaml)
	t.Setenv("UMAVEZ_LEASE", "4ms")
	_, _, stderr := run("serve")
	if !strings.Contains(stderr, "--lease 4ms:") || !strings.Contains(stderr, "--wait 1h0m0s:") {
		t.Errorf("want the variable's lease and the file's wait:\n%s", stderr)
	}
}

// TestFailures: status 1 is for what is right to ask and did not work.
func TestFailures(t *testing.T) {
	enough := []string{"serve", "--upstream", "http://127.0.0.1:1", "--route", "POST /a", "--principal", "none"}
	for _, c := range []struct {
		args []string
		want string
	}{
		{append(enough, "--store", "sqlite:/does/not/exist/umavez.db"), "umavez: sqlite: "},
		{append(enough, "--store", "memory:", "--listen", "192.0.2.1:1"), "umavez: --listen 192.0.2.1:1: "},
		{[]string{"namespace", "accept", "--reason", "x", "--principal", "none", "--store", "sqlite:" + filepath.Join(t.TempDir(), "a.db")}, "umavez: --store sqlite:"},
	} {
		status, stdout, stderr := run(c.args...)
		if status != 1 || stdout != "" || !strings.Contains("\n"+stderr, "\n"+c.want) {
			t.Errorf("umavez %s: status %d, stdout %q, stderr\n%s\nwant status 1 and a line %s",
				strings.Join(c.args, " "), status, stdout, stderr, c.want)
		}
	}
}

func TestVersion(t *testing.T) {
	t.Setenv("UMAVEZ_LISTEN", "127.0.0.1:1") // another command's, and so not worth a word
	status, stdout, stderr := run("version")
	if status != 0 || stderr != "" || !strings.HasPrefix(stdout, "umavez ") || !strings.HasSuffix(stdout, " "+runtime.Version()+" "+runtime.GOOS+"/"+runtime.GOARCH+"\n") {
		t.Errorf("status %d, stdout %q, stderr %q", status, stdout, stderr)
	}
}

// TestHelp: help is no error, is on standard output, and names the defaults.
func TestHelp(t *testing.T) {
	status, stdout, stderr := run("serve", "--help")
	if status != 0 || stderr != "" {
		t.Errorf("status %d, stderr %q", status, stderr)
	}
	text := strings.Join(strings.Fields(stdout), " ")
	for _, want := range []string{
		"--upstream=URL", "--principal=KIND", "$UMAVEZ_TRUSTED_PROXY", "(default 15s)", "(default 24h)", "(default 720h)", "(default 5m)", "(default 25s)",
		"(default 127.0.0.1:8081)", "(default 127.0.0.1:9091)", "(default sqlite:umavez.db)", "single-process",
		"beside those that say so by definition", "docs/serve.md",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("serve --help lacks %q:\n%s", want, stdout)
		}
	}
	for _, args := range [][]string{{"--help"}, {"namespace", "accept", "--help"}, {"version", "-h"}} {
		if status, stdout, _ := run(args...); status != 0 || !strings.HasPrefix(stdout, "Usage: umavez") {
			t.Errorf("umavez %s: status %d, stdout %q", strings.Join(args, " "), status, stdout)
		}
	}
}
