package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// This file runs the commands of README.md, docs/keys.md and docs/encryption.md and holds their
// output against what the text around them says. A comment above each block says
// how to check it:
//
//	<!-- check: prints "a", "b" -->
//	<!-- check: ends with 1; prints "a" -->
//	<!-- check: background until "text"; prints "a" -->
//	<!-- check: beside until "text" -->
//	<!-- check: is what .ci/run runs -->
//	<!-- check: is in examples/loja/main.go -->

// root is the folder of README.md, seen from this package.
const root = "../.."

// readmeTimeout bounds everything that README.md's commands do. It has room for
// building SQLite from nothing on a slow machine.
const readmeTimeout = 8 * time.Minute

// block is a fenced block of a page.
type block struct {
	page     string // from the root
	line     int
	language string
	check    string
	text     string
}

// place is where the block stands.
func (b block) place() string { return fmt.Sprintf("%s:%d", b.page, b.line) }

// blocksOf returns the blocks of a page in the order in which a reader meets them.
func blocksOf(t *testing.T, page string) []block {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, page))
	if errors.Is(err, os.ErrNotExist) && os.Getenv("CI") == "" {
		t.Skipf("%s is not here: this module was built outside its repository", page)
	}
	if err != nil {
		t.Fatal(err)
	}
	var blocks []block
	var check string
	var open *block
	for i, line := range strings.Split(string(text), "\n") {
		fence, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && open == nil:
			open = &block{page: page, line: i + 1, language: fence, check: check}
			check = ""
		case isFence:
			blocks = append(blocks, *open)
			open = nil
		case open != nil:
			open.text += line + "\n"
		case strings.HasPrefix(line, "<!-- check: "):
			check = strings.TrimSuffix(strings.TrimPrefix(line, "<!-- check: "), " -->")
		}
	}
	return blocks
}

// adminReady is where the log says that the admin address is.
var adminReady = regexp.MustCompile(`msg=admin address=http://(127\.0\.0\.1:\d+)`)

var (
	quoted  = regexp.MustCompile(`"([^"]*)"`)
	ready   = regexp.MustCompile(`http://(127\.0\.0\.1:\d+)`)
	isInCI  = "is what .ci/run runs"
	isIn    = "is in "
	isUntil = "background until "
	beside  = "beside until "
	endsBad = "ends with 1; "
	prints  = "prints "
)

func TestREADME(t *testing.T) { readPage(t, "README.md", 4) }

// TestREADMEInPortuguese: it has the commands of the English one, which TestREADME
// runs, with the same checks, in the same order.
func TestREADMEInPortuguese(t *testing.T) {
	english, portuguese := blocksOf(t, "README.md"), blocksOf(t, "README.pt-BR.md")
	if len(english) != len(portuguese) {
		t.Fatalf("README.pt-BR.md has %d blocks, README.md %d", len(portuguese), len(english))
	}
	for i, b := range portuguese {
		if want := english[i]; b.text != want.text || b.check != want.check || b.language != want.language {
			t.Errorf("README.pt-BR.md:%d: the block differs from README.md:%d", b.line, want.line)
		}
	}
}

func TestGuideToKeys(t *testing.T) { readPage(t, "docs/keys.md", 15) }

func TestGuideToEncryption(t *testing.T) { readPage(t, "docs/encryption.md", 1, "sh") }

// readPage follows a page that has so many blocks at the least, of these
// languages; of all where none is named.
func readPage(t *testing.T, page string, least int, languages ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), readmeTimeout)
	defer cancel()
	reader := &reader{dir: t.TempDir()}
	blocks := slices.DeleteFunc(blocksOf(t, page), func(b block) bool {
		return languages != nil && !slices.Contains(languages, b.language)
	})
	if len(blocks) < least {
		t.Fatalf("%s has only %d blocks: this test looks for the wrong thing", page, len(blocks))
	}
	for _, b := range blocks {
		t.Run(fmt.Sprintf("line %d", b.line), func(t *testing.T) { reader.follow(ctx, t, b) })
	}
	reader.pressCtrlC(t)
	reader.running, reader.beside = reader.beside, nil
	reader.pressCtrlC(t)
}

// reader is somebody who follows a page from top to bottom.
type reader struct {
	dir string
	// running is what was started last and still runs, beside what runs beside it.
	// The ports of the pages may be taken on this machine: address, admin and
	// upstream are those that stand for them.
	running, beside          *terminal
	address, admin, upstream string
}

// follow does what the block says, the way its check says.
func (r *reader) follow(ctx context.Context, t *testing.T, b block) {
	t.Helper()
	switch {
	case b.check == "":
		t.Errorf("%s: the block has no <!-- check: … --> above it", b.place())
	case b.check == isInCI:
		checkCI(t, b)
	case strings.HasPrefix(b.check, isIn):
		checkSource(t, b, strings.TrimPrefix(b.check, isIn))
	case strings.HasPrefix(b.check, beside):
		r.beside = start(ctx, t, r, b)
		said := r.beside.waitFor(ctx, t, quoted.FindStringSubmatch(b.check)[1])
		r.upstream = ready.FindStringSubmatch(said)[1]
	case strings.HasPrefix(b.check, isUntil):
		r.pressCtrlC(t)
		until, _, _ := strings.Cut(b.check, "; "+prints)
		want := quoted.FindStringSubmatch(until)[1]
		r.running = start(ctx, t, r, b)
		said := r.running.waitFor(ctx, t, want)
		if found := ready.FindAllStringSubmatch(said, -1); found != nil {
			r.address = found[len(found)-1][1]
		}
		if found := adminReady.FindStringSubmatch(said); found != nil {
			r.admin = found[1]
		}
		checkPrinted(t, b, said)
	case strings.HasPrefix(b.check, prints):
		other := start(ctx, t, r, b)
		if err := other.wait(ctx); err != nil {
			t.Errorf("%s: %v; it printed:\n%s", b.place(), err, other.said())
		}
		checkPrinted(t, b, other.said())
	case strings.HasPrefix(b.check, endsBad):
		other := start(ctx, t, r, b)
		if ended, ok := errors.AsType[*exec.ExitError](other.wait(ctx)); !ok || ended.ExitCode() != 1 {
			t.Errorf("%s: ended with %v, want exit status 1", b.place(), ended)
		}
		checkPrinted(t, b, other.said())
	default:
		t.Errorf("%s: this test does not know the check %q", b.place(), b.check)
	}
}

// checkPrinted looks for what the check's "prints" quotes.
func checkPrinted(t *testing.T, b block, said string) {
	t.Helper()
	i := strings.Index(b.check, prints)
	if i < 0 {
		return
	}
	for _, want := range quoted.FindAllStringSubmatch(b.check[i:], -1) {
		if !strings.Contains(said, want[1]) {
			t.Errorf("%s: did not print %q; it printed:\n%s", b.place(), want[1], said)
		}
	}
}

// checkCI: the command is the one that every change must pass. Running it here
// would run this test again.
func checkCI(t *testing.T, b block) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, ".ci", "run"))
	if err != nil {
		t.Fatal(err)
	}
	command := strings.TrimSpace(b.text)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if !strings.HasSuffix(lines[len(lines)-1], "exec "+command) {
		t.Errorf("%s: .ci/run ends with %q, want it to exec %q", b.place(), lines[len(lines)-1], command)
	}
	if _, err := os.Stat(filepath.Join(root, command)); err != nil {
		t.Error(err)
	}
}

// checkSource: the block stands, indented or not, in a file that compiles and
// is tested.
func checkSource(t *testing.T, b block, file string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(unindented(string(text)), unindented(b.text)) {
		t.Errorf("%s: %s does not hold these lines", b.place(), file)
	}
}

func unindented(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return strings.Join(lines, "\n")
}

// pressCtrlC ends what runs, as a terminal does: by an interrupt to all of it.
func (r *reader) pressCtrlC(t *testing.T) {
	t.Helper()
	if r.running == nil {
		return
	}
	ended := r.running
	r.running = nil
	if err := syscall.Kill(-ended.cmd.Process.Pid, syscall.SIGINT); err != nil {
		t.Errorf("Ctrl-C: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := ended.wait(ctx); err != nil {
		t.Errorf("after Ctrl-C it ended with: %v\n%s", err, ended.said())
	}
}

// terminal is a running command and what it has printed.
type terminal struct {
	cmd  *exec.Cmd
	done chan error

	mu      sync.Mutex
	printed bytes.Buffer
	// more is closed, and replaced, when something was printed.
	more chan struct{}
}

// start runs a block in the root folder, in a process group of its own, with
// free ports and files instead of the ones that a person would use.
func start(ctx context.Context, t *testing.T, r *reader, b block) *terminal {
	t.Helper()
	text := b.text
	for port, address := range map[string]string{"8081": r.address, "9091": r.admin, "8082": r.upstream} {
		if address != "" {
			text = strings.ReplaceAll(text, "127.0.0.1:"+port, address)
		}
	}
	if strings.HasPrefix(b.check, beside) {
		text = strings.ReplaceAll(text, "127.0.0.1:8082", "127.0.0.1:0")
	}
	if strings.HasPrefix(b.check, prints) || strings.HasPrefix(b.check, endsBad) {
		// What one block calls ID or KEY, the next ones do, too: they are one terminal.
		session := filepath.Join(r.dir, "session")
		text = fmt.Sprintf("[ ! -f %[1]s ] || . %[1]s\n%[2]s\nfor v in ID KEY; do [ -z \"${!v-}\" ] || declare -p $v; done > %[1]s\n", session, text)
	}
	term := &terminal{done: make(chan error, 1), more: make(chan struct{})}
	term.cmd = exec.CommandContext(ctx, "bash", "-euc", text)
	term.cmd.Dir = root
	term.cmd.Env = append(os.Environ(),
		"DEMO_LISTEN=127.0.0.1:0", "DEMO_ADMIN=127.0.0.1:0", "DEMO_UPSTREAM=127.0.0.1:0",
		"UMAVEZ_LISTEN=127.0.0.1:0", "UMAVEZ_ADMIN=127.0.0.1:0",
		"UMAVEZ_STORE=sqlite:"+filepath.Join(r.dir, "umavez.db"))
	term.cmd.Stdout, term.cmd.Stderr = term, term
	term.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	term.cmd.Cancel = func() error { return syscall.Kill(-term.cmd.Process.Pid, syscall.SIGKILL) }
	if err := term.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { term.done <- term.cmd.Wait() }()
	return term
}

// Write keeps what the command prints.
func (term *terminal) Write(p []byte) (int, error) {
	term.mu.Lock()
	defer term.mu.Unlock()
	close(term.more)
	term.more = make(chan struct{})
	return term.printed.Write(p)
}

func (term *terminal) said() string {
	said, _ := term.look()
	return said
}

// look returns what was printed so far, and a channel that closes when there is more.
func (term *terminal) look() (said string, more <-chan struct{}) {
	term.mu.Lock()
	defer term.mu.Unlock()
	return term.printed.String(), term.more
}

// waitFor returns what was printed once it holds want.
func (term *terminal) waitFor(ctx context.Context, t *testing.T, want string) string {
	t.Helper()
	for {
		said, more := term.look()
		if strings.Contains(said, want) {
			return said
		}
		select {
		case <-more:
		case err := <-term.done:
			term.done <- err
			if said = term.said(); !strings.Contains(said, want) {
				t.Fatalf("it ended (%v) without printing %q; it printed:\n%s", err, want, said)
			}
			return said
		case <-ctx.Done():
			t.Fatalf("it did not print %q in time; it printed:\n%s", want, said)
		}
	}
}

// wait returns how the command ended.
func (term *terminal) wait(ctx context.Context) error {
	select {
	case err := <-term.done:
		term.done <- err
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
