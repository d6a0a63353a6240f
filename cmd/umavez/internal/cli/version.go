package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is set by a release's linker flags; else the module's own is used.
var version string

// versionCommand is `umavez version`.
type versionCommand struct{}

// Run prints a line: name, version, Go's version, system.
func (versionCommand) Run(s *surroundings) error {
	_, err := fmt.Fprintf(s.stdout, "umavez %s %s %s/%s\n", versionText(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

func versionText() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
