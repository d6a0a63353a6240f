package keys

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/umavezhttp"
)

// Find hashes the names as the services of the namespace do.
func (l *Local) Find(ctx context.Context, n Names) (Found, error) {
	n.Namespace = cmp.Or(n.Namespace, DefaultNamespace)
	s, err := l.settings(ctx, n.Namespace)
	if err != nil {
		return Found{}, err
	}
	principal, err := principalOf(s.Recipe, n.Principal)
	if err != nil {
		return Found{}, err
	}
	key := umavez.Key{Scope: umavez.Scope{Namespace: n.Namespace, Principal: principal}, Name: n.Key}
	if s.Kept {
		key.Secret = [umavez.HashKeySize]byte([]byte(s.HashKey))
	}
	f := Found{Scope: key.ScopeID().String()}
	if n.Key != "" {
		f.ID = key.ID().String()
	}
	return f, nil
}

// errSeen ends the search for a namespace's settings.
var errSeen = errors.New("umavez: seen")

// settings reads what the services of a namespace share, and makes nothing:
// settings that this command made would be another recipe than theirs.
func (l *Local) settings(ctx context.Context, namespace string) (umavez.Settings, error) {
	keeper, ok := l.Store.(umavez.Rewriter)
	if !ok {
		return umavez.Settings{}, faultf(CodeNotOffered, "this store does not tell how its namespaces hash their keys; list shows the IDs")
	}
	recipe, found := "", false
	err := keeper.RewriteSettings(ctx, func(name string, s *umavez.Settings) error {
		if name == namespace {
			recipe, found = s.Recipe, true
			return errSeen
		}
		return nil
	})
	if err != nil && !errors.Is(err, errSeen) {
		return umavez.Settings{}, l.fault("the store did not give the settings of the namespace", err)
	}
	if !found {
		return umavez.Settings{}, faultf(CodeNotFound, "--namespace %s: no service has begun to use it in this store", namespace)
	}
	s, err := l.Engine.Namespace(ctx, namespace, recipe)
	if err != nil {
		return s, l.fault("the settings of the namespace "+namespace+" do not open with this key ring", err)
	}
	return s, nil
}

// principalOf puts a principal together as the sidecar's sources do. The
// recipes of programs are their own: one part is the principal as it stands,
// and several are joined as umavezhttp's helpers join theirs.
func principalOf(recipe string, parts []string) (string, error) {
	kind, _, _ := strings.Cut(recipe, ":")
	take, form := 1, "the caller's name"
	switch {
	case recipe == "none":
		take, form = 0, "nothing: it does not tell its callers apart"
	case kind == "header" || kind == "auth":
	case kind == "jwt":
		take, form = 2, "the issuer, then the caller: --principal https://id.example --principal ana"
	case recipe == "mtls":
		take, form = 2, "the certificate's subject, then its issuer"
	default:
		kind = ""
		take = max(len(parts), 1)
		form = "the principal as the program makes it, or the parts of umavezhttp.PrincipalOf: --principal basic --principal ana"
	}
	if len(parts) != take {
		return "", faultf(CodeUsage, "--principal: this namespace finds its callers by %q, and takes %s", recipe, form)
	}
	switch kind {
	case "":
		if len(parts) == 1 {
			return parts[0], nil
		}
		return umavezhttp.PrincipalOf(parts...), nil
	case "none":
		return umavezhttp.Anonymous(nil)
	}
	return umavezhttp.PrincipalOf(append([]string{kind}, parts...)...), nil
}
