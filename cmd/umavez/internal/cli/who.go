package cli

import (
	"os"
	"os/user"
	"strconv"
)

// whoami is the user and the host of this process, for the audit trail.
func whoami() string {
	name := "user " + strconv.Itoa(os.Getuid())
	if u, err := user.Current(); err == nil && u.Username != "" {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	return name
}
