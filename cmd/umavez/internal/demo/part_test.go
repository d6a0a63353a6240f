package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
)

// TestPartEndsWithItsParent: when the other end of its standard input is gone, as
// when its parent was killed, a part ends by itself.
func TestPartEndsWithItsParent(t *testing.T) {
	w, err := newWorld(program, false, scriptTimes) // for its files
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.close(); err != nil {
			t.Error(err)
		}
	}()
	for _, role := range []string{roleGateway, roleUnprotected, roleProtected} {
		spec, err := json.Marshal(Part{Role: role, Dir: w.dir, Gateway: w.account(Protected), Times: scriptTimes})
		if err != nil {
			t.Fatal(err)
		}
		stdin, parent := io.Pipe()
		lines, stderr := io.Pipe()
		ended := make(chan error, 1)
		go func() { ended <- RunPart(context.Background(), string(spec), stdin, stderr) }()
		line, err := bufio.NewReader(lines).ReadString('\n')
		if err != nil || !strings.HasPrefix(line, "umavez: listening on http://127.0.0.1:") {
			t.Errorf("%s: it says %q, %v", role, line, err)
		}
		go func() { _, _ = io.Copy(io.Discard, lines) }()
		parent.Close()
		if err := <-ended; err != nil {
			t.Errorf("%s: it ended with %v", role, err)
		}
		stderr.Close()
	}
}

func TestPartRefuses(t *testing.T) {
	for _, spec := range []string{"", "{", `{"role":"x"}`} {
		if err := RunPart(t.Context(), spec, strings.NewReader(""), io.Discard); err == nil {
			t.Errorf("%q is a part", spec)
		}
	}
}
