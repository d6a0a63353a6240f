package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestKeysWrongUsage: status 2 and a message that names the flag, for every flag
// that can be wrong.
func TestKeysWrongUsage(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	id := strings.Repeat("0", 64)
	ref := id + ".1"
	settle := func(more ...string) []string {
		return append([]string{"settle", ref, "--happened", "--status", "201", "--reason", "r"}, more...)
	}
	large := filepath.Join(dir, "large")
	if err := os.WriteFile(large, make([]byte, 2<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	open := filepath.Join(dir, "open")
	if err := os.WriteFile(open, []byte("0123456789abcdef"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, `expected one of "list", "show", "settle", "forget", "purge"`},
		{[]string{"list", "extra"}, "unexpected argument extra"},
		{[]string{"list", "--state", "gone"}, "--state gone: must be unknown, lost, running, done or expired"},
		{[]string{"list", "--state", "done,gone"}, "--state gone: must be"},
		{[]string{"list", "--scope", "x"}, "--scope x: must be the 32 hexadecimal digits"},
		{[]string{"list", "--older-than", "1"}, `--older-than: "1" is not a duration`},
		{[]string{"list", "--older-than", "-1h"}, "--older-than -1h0m0s: must not be negative"},
		{[]string{"list", "--limit", "0"}, "--limit 0: must be 1 or more"},
		{[]string{"list", "--limit", "many"}, "--limit: expected a valid 64 bit int"},
		{[]string{"list", "--scope", strings.Repeat("0", 32), "--principal", "ana"}, "--scope and --principal: name the caller in two ways"},
		{[]string{"list", "--store", "memory:"}, "--store memory:: is in the memory of a running serve; ask that by --admin URL"},
		{[]string{"list", "--store", "sqlite:"}, "--store sqlite:: must name the file"},
		{[]string{"list", "--store", "postgres://u:s3cret@h/db"}, "--store postgres:…: this program opens memory: or sqlite:FILE"},
		{[]string{"list", "--config", "none.yaml"}, "--config none.yaml: "},
		{[]string{"list", "--keyring", "none.txt"}, "--keyring none.txt: "},
		{[]string{"list", "--keyring", open}, "chmod 600"},
		{[]string{"list", "--admin", "127.0.0.1:9091", "--admin-token", open}, "--admin-token " + open + ": others than its owner may read it"},
		{[]string{"list", "--admin", "http://h", "--store", "sqlite:a.db"}, "--admin and --store: are two ways to the keys"},
		{[]string{"list", "--admin", "http://h", "--keyring", "k"}, "--admin and --keyring: are two ways to the keys"},
		{[]string{"list", "--admin", "http://h"}, "--admin http://h: needs --admin-token"},
		{[]string{"list", "--admin-token", open}, "--admin-token: goes with --admin"},
		{[]string{"show"}, "which key?"},
		{[]string{"show", "--namespace", "n"}, "which key?"},
		{[]string{"show", ref, "--key", "k"}, "name the key in two ways"},
		{[]string{"settle"}, `expected "<id>"`},
		{[]string{"settle", ref, "--reason", "r"}, "settle needs one of --happened, --cannot-happen and --park"},
		{settle("--park"), "settle needs one of --happened, --cannot-happen and --park"},
		{[]string{"settle", id, "--park", "--reason", "r"}, "ends before its fence"},
		{[]string{"settle", "k", "--park", "--reason", "r"}, "64 hexadecimal digits"},
		{[]string{"settle", ref, "--park"}, "--reason: must say why"},
		{[]string{"settle", ref, "--park", "--reason", " "}, "--reason: must say why"},
		{[]string{"settle", ref, "--park", "--reason", "r", "--who", ""}, "--who: must say who"},
		{[]string{"settle", ref, "--park", "--reason", "r", "--force"}, "--force: goes with --cannot-happen only"},
		{[]string{"settle", ref, "--park", "--reason", "r", "--status", "201"}, "go with --happened only"},
		{[]string{"settle", ref, "--happened", "--reason", "r"}, "--status is missing"},
		{[]string{"settle", ref, "--happened", "--reason", "r", "--status", "done"}, "--status: expected a valid 64 bit int"},
		{[]string{"settle", ref, "--happened", "--reason", "r", "--status", "102"}, "--status 102: must be from 200 to 599"},
		{settle("--header", "Location"), `--header "Location": must be 'Name: value'`},
		{settle("--header", "Set-Cookie: a"), "is not replayed"},
		{settle("--body", "@none.json"), "--body @none.json: "},
		{settle("--body", "@"+large), "has 2097152 bytes, at most 1048576"},
		{settle("--max-run", "1ms"), "--max-run 1ms: must be between"},
		{settle("--retain", "soon"), "--retain: "},
		{settle("--tombstone", "-1s"), "--tombstone -1s: must be between"},
		{settle("--accept-risk", "none", "--config", "none.yaml"), "--config none.yaml: "},
		{[]string{"forget", id, "--reason", "r"}, "ends before its fence"},
		{[]string{"forget", ref}, "--reason: must say why"},
		{[]string{"reseal"}, "reseal needs --keyring"},
		{[]string{"reseal", "--admin", "http://h"}, "unknown flag --admin"},
		{[]string{"generate", "--id", "a b"}, "--id: "},
	} {
		status, stdout, stderr := run(append([]string{"keys"}, c.args...)...)
		if status != 2 || stdout != "" || !strings.HasPrefix(stderr, "umavez: ") || !strings.Contains(stderr, c.want) || strings.Contains(stderr, "s3cret") {
			t.Errorf("umavez keys %s: status %d, stdout %q, stderr\n%s\nwant status 2 and %s", strings.Join(c.args, " "), status, stdout, stderr, c.want)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("files were made: %v, %v", left, err)
	}
}

// TestKeysFailures: status 1 is for what is right to ask and did not work.
func TestKeysFailures(t *testing.T) {
	t.Chdir(t.TempDir())
	token := secretFile(t, "token", shopToken)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"list"}, "umavez: --store sqlite:umavez.db: stat umavez.db: no such file"},
		{[]string{"list", "--admin", "http://127.0.0.1:1", "--admin-token", token}, "umavez: --admin http://127.0.0.1:1: no reply: "},
	} {
		status, stdout, stderr := run(append([]string{"keys"}, c.args...)...)
		if status != 1 || stdout != "" || !strings.HasPrefix(stderr, c.want) {
			t.Errorf("umavez keys %s: status %d, stdout %q, stderr %s, want %s", strings.Join(c.args, " "), status, stdout, stderr, c.want)
		}
	}
}

// TestVariablesDoNotAct: what stands in the environment for serve names the
// store, and is no filter, no verdict and no reason.
func TestVariablesDoNotAct(t *testing.T) {
	s := newShop(t)
	s.pay("k", "500")
	t.Setenv("UMAVEZ_STORE", s.store)
	t.Setenv("UMAVEZ_ROUTE", "POST /elsewhere")
	t.Setenv("UMAVEZ_NAMESPACE", "elsewhere")
	t.Setenv("UMAVEZ_STATE", "done")
	t.Setenv("UMAVEZ_ADMIN", "127.0.0.1:1")
	t.Setenv("UMAVEZ_REASON", "left here")
	id := s.only(nil).ID
	s.refuses(2, "--reason: must say why", nil, "settle", id, "--park")
}
