package cli

import (
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// variablePrefix begins the names of the variables that set flags.
const variablePrefix = "UMAVEZ"

// linked are variables that Kubernetes sets for services whose names begin with
// umavez. They are nobody's mistake.
var linked = regexp.MustCompile(`_SERVICE_(HOST|PORT)(_|$)|_PORT(_\d+_(TCP|UDP|SCTP)(_\w+)?)?$`)

// strayVariables returns the names of UMAVEZ_… variables that set no flag of
// any command: misspelled, most likely, and without an effect that anybody
// would notice.
func strayVariables(program *kong.Node, environ []string) []string {
	known := variablesOf(program)
	var stray []string
	for _, variable := range environ {
		name, _, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, variablePrefix+"_") && !slices.Contains(known, name) && !linked.MatchString(name) {
			stray = append(stray, name)
		}
	}
	return stray
}

// variablesOf returns the names of all variables of a command and those below it.
func variablesOf(node *kong.Node) []string {
	var names []string
	for _, flag := range node.Flags {
		names = append(names, flag.Envs...)
	}
	for _, below := range node.Children {
		names = append(names, variablesOf(below)...)
	}
	return names
}
