package killtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/proxy"
	"github.com/umavez/umavez/store/sqlitestore"
	"github.com/umavez/umavez/umavezhttp"
)

// standing says, for each record ID, at which moment each of its attempts was
// last seen.
type standing struct {
	last map[string]map[string]string
	// diedAt are the records at whose moment a process died, and the moment.
	diedAt map[string]string
	// secret is under which records are named: that of the namespace.
	secret [umavez.HashKeySize]byte
}

// readJournal reads what all processes of a test wrote. The last line may be
// cut short by a death; then the moment was not reached.
func readJournal(file string) (standing, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return standing{}, err
	}
	s := standing{last: map[string]map[string]string{}, diedAt: map[string]string{}}
	for line := range strings.Lines(string(text)) {
		if !strings.HasSuffix(line, "\n") {
			break
		}
		fields := strings.Fields(line)
		if len(fields) != 3 {
			return standing{}, fmt.Errorf("killtest: journal line %q", line)
		}
		moment, id, attempt := fields[0], fields[1], fields[2]
		if moment == diedHere {
			s.diedAt[id] = s.last[id][attempt]
		}
		if !ofAnAttempt[moment] {
			continue
		}
		if s.last[id] == nil {
			s.last[id] = map[string]string{}
		}
		s.last[id][attempt] = moment
	}
	return s, nil
}

// ofAnAttempt are the moments of an attempt's course; others are a duplicate's.
var ofAnAttempt = map[string]bool{
	umavez.MomentClaimed.String(): true, umavez.MomentStarted.String(): true,
	umavez.MomentCompleting.String(): true, umavez.MomentCompleted.String(): true,
	umavez.MomentReleasing.String(): true, umavez.MomentReleased.String(): true,
	umavez.MomentAbandoned.String(): true, umavez.MomentUnstarted.String(): true,
}

// ended are the moments after which an attempt is over.
var ended = map[string]bool{
	umavez.MomentCompleted.String(): true, umavez.MomentReleased.String(): true, umavez.MomentAbandoned.String(): true,
}

// doubtful are the moments at which a death leaves it open whether the
// operation happened: it had started, and its end was not acknowledged.
var doubtful = map[string]bool{
	umavez.MomentStarted.String(): true, umavez.MomentCompleting.String(): true, umavez.MomentReleasing.String(): true,
}

// caught returns the moments at which a key's attempts were when their process
// died: none, if every attempt came to its end.
func (s standing) caught(key string) []string {
	var at []string
	for _, moment := range s.last[s.recordID(key)] {
		if !ended[moment] {
			at = append(at, moment)
		}
	}
	return at
}

// recordID is the ID of a key's record under the settings of the test.
func (s standing) recordID(key string) string {
	principal, err := umavezhttp.Anonymous(nil)
	if err != nil {
		panic(err)
	}
	k := umavez.Key{Scope: umavez.Scope{Namespace: "default", Principal: principal}, Name: key, Secret: s.secret}
	return k.ID().String()
}

// readSecret reads from a store under which secret its keys are hashed.
func readSecret(ctx context.Context, file string) (secret [umavez.HashKeySize]byte, err error) {
	store, err := sqlitestore.Open(ctx, file, sqlitestore.Options{})
	if err != nil {
		return secret, err
	}
	defer store.Close()
	eng, err := umavez.New(store, umavez.Options{})
	if err != nil {
		return secret, err
	}
	settings, err := eng.Namespace(ctx, "default", proxy.NoPrincipal().Recipe())
	copy(secret[:], settings.HashKey)
	return secret, errors.Join(err, eng.Close(ctx))
}
