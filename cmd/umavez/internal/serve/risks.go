package serve

import (
	"os"
	"slices"
	"strings"

	"github.com/umavez/umavez/store/sqlitestore"
)

// Risk is a way in which the promise does not hold, that a start refuses until
// somebody accepts it by name.
type Risk string

// RiskSingleProcess: memory and SQLite serve one process on one machine. In
// Kubernetes a second replica, or a pod that moves to another node, begins with
// an empty store, and runs again what the first one ran.
const RiskSingleProcess Risk = "single-process"

// Risks are all that can be accepted: ours, and those of the SQLite store's own
// start-up checks.
func Risks() []Risk {
	return []Risk{RiskSingleProcess, sqlitestore.RiskNetworkFS, sqlitestore.RiskSQLiteVersion}
}

// RiskNames lists them for people.
func RiskNames() string {
	names := make([]string, 0, len(Risks()))
	for _, r := range Risks() {
		names = append(names, string(r))
	}
	return strings.Join(names, ", ")
}

func (s Settings) risks(c *Config, p *problems) {
	for _, name := range s.AcceptRisk {
		if !slices.Contains(Risks(), Risk(name)) {
			p.addf("--accept-risk %s: no such risk; there is %s", name, RiskNames())
			continue
		}
		c.AcceptRisk = append(c.AcceptRisk, Risk(name))
	}
	if os.Getenv("KUBERNETES_SERVICE_HOST") != "" && c.Store.SingleProcess() && !slices.Contains(c.AcceptRisk, RiskSingleProcess) {
		p.addf("--store %s: refused inside Kubernetes, where a second replica or a moved pod would begin with an empty store and run operations again; "+
			"to accept that: --accept-risk %s", c.Store, RiskSingleProcess)
	}
}
