package keyring_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/umavez/umavez/keyring"
)

func TestParse(t *testing.T) {
	text := "# since March\n\n  " + strings.TrimSpace(lineOf("2026-03", secretOf("x"))) + "  \r\n# before\n" + lineOf("old_1.b", secretOf("y"))
	r := parse(t, text, false)
	if got := r.IDs(); len(got) != 2 || got[0] != "2026-03" || got[1] != "old_1.b" || r.Active() != "2026-03" {
		t.Errorf("keys %v, active %s", got, r.Active())
	}
}

// TestParseRefuses what is no ring, and shows nothing of it.
func TestParseRefuses(t *testing.T) {
	secret := secretOf("x")
	encoded := base64.StdEncoding.EncodeToString(secret)
	var many strings.Builder
	for i := range keyring.MaxKeys + 1 {
		many.WriteString(lineOf("k"+string(rune('A'+i/26))+string(rune('a'+i%26)), secretOf(string(rune(i)))))
	}
	for _, c := range []struct{ name, text, says string }{
		{"nothing", "", "no key"},
		{"only comments", "# a:" + encoded + "\n", "no key"},
		{"a key alone", encoded + "\n", "line 1: there is no colon"},
		{"the key in front", encoded + ":a\n", "an id has"},
		{"no id", ":" + encoded + "\n", "an id has"},
		{"an id that is too long", lineOf(strings.Repeat("x", 33), secret), "an id has"},
		{"an id with a space", lineOf("a b", secret), "an id has"},
		{"an id with a letter that looks like another", lineOf("\u0430", secret), "an id has"},
		{"hexadecimal", "a:" + strings.Repeat("0f", 32) + "\n", "48 bytes"},
		{"not base64", "a:" + encoded[:43] + "!\n", "not in base64"},
		{"base64 with loose bits", "a:" + encoded[:42] + "9=\n", "not in base64"},
		{"a short key", lineOf("a", secret[:31]), "31 bytes"},
		{"a long key", lineOf("a", append(secret, 0)), "33 bytes"},
		{"zeros", lineOf("a", make([]byte, 32)), "all zeros"},
		{"an id twice", lineOf("a", secret) + lineOf("a", secretOf("y")), `line 2: the id "a" is there twice`},
		{"a key twice", lineOf("a", secret) + "\n" + lineOf("b", secret), `line 3: the key of "b" is there already`},
		{"too many", many.String(), "more than 64 keys"},
	} {
		r, err := keyring.Parse([]byte(c.text), true)
		if err == nil || r != nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: ring %v, error %v, want one that says %q", c.name, r, err, c.says)
			continue
		}
		if strings.Contains(err.Error(), encoded[:10]) {
			t.Errorf("%s: the error shows a key: %v", c.name, err)
		}
	}
}

func TestGenerate(t *testing.T) {
	first, err := keyring.Generate("2026-03")
	if err != nil {
		t.Fatal(err)
	}
	second, err := keyring.Generate("2026-03")
	if err != nil || first == second {
		t.Fatalf("drew %q twice, error %v", first, err)
	}
	parse(t, first+"\n", false)
	if _, err := keyring.Generate("a b"); err == nil {
		t.Error("drew a key for an id that is none")
	}
}

func write(t *testing.T, mode os.FileMode, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "ring")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, mode); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestLoadFile(t *testing.T) {
	for _, mode := range []os.FileMode{0o600, 0o400} {
		r, err := keyring.Load(t.Context(), keyring.Source{File: write(t, mode, lineOf("a", secretOf("a")))})
		if err != nil || r.Active() != "a" || r.AllowsPlain() {
			t.Errorf("mode %#o: ring %v, error %v", mode, r, err)
		}
	}
	r, err := keyring.Load(t.Context(), keyring.Source{File: write(t, 0o600, lineOf("a", secretOf("a"))), AllowPlain: true})
	if err != nil || !r.AllowsPlain() {
		t.Errorf("AllowPlain is not heard: %v", err)
	}
}

func TestLoadFileRefuses(t *testing.T) {
	good := lineOf("a", secretOf("a"))
	for name, file := range map[string]string{
		"no regular file": t.TempDir(),
		"too long":        write(t, 0o600, good+strings.Repeat("#\n", keyring.MaxText/2)),
		"not there":       filepath.Join(t.TempDir(), "ring"),
	} {
		if _, err := keyring.Load(t.Context(), keyring.Source{File: file}); err == nil {
			t.Errorf("%s: loaded", name)
		}
	}
	if runtime.GOOS == "windows" {
		return // files have no such bits there
	}
	for _, mode := range []os.FileMode{0o640, 0o604, 0o620, 0o601, 0o644} {
		_, err := keyring.Load(t.Context(), keyring.Source{File: write(t, mode, good)})
		if err == nil || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("mode %#o: %v, want it refused", mode, err)
		}
	}
}

// TestHelperCommand is no test: it is the command that TestLoadCommand runs.
func TestHelperCommand(*testing.T) {
	switch os.Getenv("KEYRING_TEST_COMMAND") {
	case "prints":
		_, _ = os.Stderr.WriteString("asking the vault\n")
		_, _ = os.Stdout.WriteString(os.Getenv("KEYRING_TEST_TEXT"))
		os.Exit(0)
	case "fails":
		_, _ = os.Stdout.WriteString(os.Getenv("KEYRING_TEST_TEXT"))
		_, _ = os.Stderr.WriteString("no token: " + os.Getenv("KEYRING_TEST_TEXT"))
		os.Exit(3)
	case "floods":
		for range 1 << 10 {
			_, _ = os.Stdout.WriteString(strings.Repeat("#\n", 512))
		}
		os.Exit(0)
	case "hangs":
		_, _ = os.Stderr.WriteString("ready\n")
		select {}
	}
}

func command(t *testing.T, does string) []string {
	t.Helper()
	t.Setenv("KEYRING_TEST_COMMAND", does)
	t.Setenv("KEYRING_TEST_TEXT", lineOf("a", secretOf("a")))
	return []string{os.Args[0], "-test.run=^TestHelperCommand$"}
}

func TestLoadCommand(t *testing.T) {
	var said bytes.Buffer
	r, err := keyring.Load(t.Context(), keyring.Source{Command: command(t, "prints"), Stderr: &said})
	if err != nil || r.Active() != "a" || said.String() != "asking the vault\n" {
		t.Errorf("ring %v, error %v; said %q", r, err, said.String())
	}
}

// TestLoadCommandRefuses: also a text that is good, of a command that failed.
func TestLoadCommandRefuses(t *testing.T) {
	for does, says := range map[string]string{"fails": "exit status 3", "floods": "more than"} {
		_, err := keyring.Load(t.Context(), keyring.Source{Command: command(t, does)})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want an error that says %q", does, err, says)
		}
		if err != nil && strings.Contains(err.Error(), base64.StdEncoding.EncodeToString(secretOf("a"))[:10]) {
			t.Errorf("%s: the error shows the key: %v", does, err)
		}
	}
	if _, err := keyring.Load(t.Context(), keyring.Source{Command: []string{"/nowhere/at/all"}}); err == nil {
		t.Error("ran a command that is not there")
	}
}

// stopper ends a context as soon as something is written to it.
type stopper struct{ stop context.CancelFunc }

func (s stopper) Write(b []byte) (int, error) { s.stop(); return len(b), nil }

func TestLoadCommandEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := keyring.Load(ctx, keyring.Source{Command: command(t, "hangs"), Stderr: stopper{cancel}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v, want the context's cause", err)
	}
}

func TestLoadNeedsOneSource(t *testing.T) {
	for _, s := range []keyring.Source{{}, {File: "a", Command: []string{"b"}}} {
		if _, err := keyring.Load(t.Context(), s); err == nil {
			t.Errorf("loaded from %+v", s)
		}
	}
}
