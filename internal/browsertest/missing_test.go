package browsertest

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestWithoutABrowser: where a change is judged these tests fail without Chromium,
// and say what to do; elsewhere they are skipped, and say the same.
func TestWithoutABrowser(t *testing.T) {
	for _, c := range []struct{ ci, says string }{
		{"true", "--- FAIL: TestDemoAtADesk"},
		{"", "--- SKIP: TestDemoAtADesk"},
	} {
		again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDemoAtADesk$", "-test.v")
		again.Env = append(os.Environ(), "PATH="+t.TempDir(), "CI="+c.ci)
		out, err := again.CombinedOutput()
		if failed := err != nil; failed != (c.ci != "") {
			t.Errorf("with CI=%q it ended with %v", c.ci, err)
		}
		for _, want := range []string{c.says, "there is no Chromium here", "script/setup.sh test installs it"} {
			if !strings.Contains(string(out), want) {
				t.Errorf("with CI=%q it does not say %q:\n%s", c.ci, want, out)
			}
		}
	}
}
