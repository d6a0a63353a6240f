package keys

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/keyring"
	"github.com/umavez/umavez/umavezhttp"
)

// namespace makes a namespace as a service does, and returns its hash key.
func (s *shop) namespace(desk *Local, name, recipe string) (secret [32]byte) {
	s.t.Helper()
	set, err := desk.Engine.Namespace(s.t.Context(), name, recipe)
	s.must(err)
	return [32]byte([]byte(set.HashKey))
}

// TestFind: a client's key is found under the caller that the sidecar makes of
// the parts, for each way to know callers.
func TestFind(t *testing.T) {
	for _, c := range []struct {
		recipe    string
		parts     []string
		principal string
	}{
		{"none", nil, "9:anonymous,"},
		{"header:X-User", []string{"ana"}, umavezhttp.PrincipalOf("header", "ana")},
		{"auth:X-Auth-Request-User", []string{"ana"}, umavezhttp.PrincipalOf("auth", "ana")},
		{"jwt:iss+sub", []string{"https://id.example", "ana"}, umavezhttp.PrincipalOf("jwt", "https://id.example", "ana")},
		{"mtls", []string{"CN=ana", "CN=ca"}, umavezhttp.PrincipalOf("mtls", "CN=ana", "CN=ca")},
		{"my-own", []string{"5:basic,3:ana,"}, "5:basic,3:ana,"},
		{"my-own", []string{"basic", "ana"}, umavezhttp.PrincipalOf("basic", "ana")},
	} {
		s := newShop(t)
		secret := s.namespace(s.desk, "loja", c.recipe)
		want := umavez.Key{Scope: umavez.Scope{Namespace: "loja", Principal: c.principal}, Name: "k", Secret: secret}
		for name, desk := range s.carriers() {
			found, err := desk.Find(t.Context(), Names{Namespace: "loja", Principal: c.parts, Key: "k"})
			if err != nil || found.ID != want.ID().String() || found.Scope != want.ScopeID().String() {
				t.Errorf("%s, %s: %+v, %v", name, c.recipe, found, err)
			}
			wrong := append(c.parts, "more")
			if c.recipe == "my-own" {
				wrong = nil
			}
			_, err = desk.Find(t.Context(), Names{Namespace: "loja", Principal: wrong, Key: "k"})
			refused(t, c.recipe, err, CodeUsage, "--principal: this namespace finds its callers by")
		}
	}
}

// TestFindTakesTheDefaultNamespace where none is named.
func TestFindTakesTheDefaultNamespace(t *testing.T) {
	s := newShop(t)
	s.namespace(s.desk, DefaultNamespace, "none")
	for name, desk := range s.carriers() {
		want, err := desk.Find(t.Context(), Names{Namespace: DefaultNamespace, Key: "k"})
		s.must(err)
		if got, err := desk.Find(t.Context(), Names{Key: "k"}); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, want)
		}
	}
}

// TestFindMakesNothing: settings that the question had made would keep the
// namespace's services from starting.
func TestFindMakesNothing(t *testing.T) {
	s := newShop(t)
	for name, desk := range s.carriers() {
		_, err := desk.Find(t.Context(), Names{Namespace: "loja", Key: "k"})
		refused(t, name, err, CodeNotFound, "--namespace loja: no service has begun to use it")
	}
	s.namespace(s.desk, "loja", "header:X-User")
}

func ring(t *testing.T) *keyring.Ring {
	t.Helper()
	line, err := keyring.Generate("k1")
	if err != nil {
		t.Fatal(err)
	}
	r, err := keyring.Parse([]byte(line+"\n"), false)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestSealedNamespace: an answer is not kept in a form that the services of the
// namespace do not open, and with their ring it is sealed.
func TestSealedNamespace(t *testing.T) {
	s := newShop(t)
	sealed := s.over(umavez.Options{Sealer: ring(t)})
	secret := s.namespace(sealed, "loja", "none")
	l := s.claim("k")
	s.later(time.Minute)
	c := Change{ID: refTo(l), Action: "happened", Status: 201, Body: []byte("s3cret-answer")}
	for what, desk := range map[string]*Local{"without a ring": s.desk, "with another": s.over(umavez.Options{Sealer: ring(t)})} {
		refused(t, what, settle(t.Context(), desk, c), CodeSealed, "set --keyring as theirs is")
		if _, err := desk.Find(t.Context(), Names{Namespace: "loja", Key: "k"}); err == nil {
			t.Errorf("%s: a key was found", what)
		}
	}
	s.must(settle(t.Context(), sealed, c))
	rec, err := s.store.Get(t.Context(), l.ID)
	s.must(err)
	if bytes.Contains(rec.Answer, []byte("s3cret")) || len(rec.Answer) == 0 {
		t.Errorf("kept as %q", rec.Answer)
	}
	if shown := show(t, sealed, refTo(l)); shown.AnswerStatus != 201 || shown.Sealed || shown.Unreadable != "" {
		t.Errorf("with the ring: %+v", shown)
	}
	shown := show(t, s.desk, refTo(l))
	if shown.AnswerStatus != 0 || shown.AnswerBytes == 0 || !shown.Sealed {
		t.Errorf("without the ring: %+v", shown)
	}
	var text strings.Builder
	s.must(shown.Text(&text))
	if want := fmt.Sprintf("\nanswer       given by settling: %d bytes, sealed; give --keyring to see its status\n", shown.AnswerBytes); !strings.Contains(text.String(), want) {
		t.Errorf("without the ring it says\n%s\nwant %s", text.String(), want)
	}
	if secret == ([32]byte{}) {
		t.Error("the hash key was not opened")
	}
	// A plain namespace, and a ring that takes nothing plain.
	plain := newShop(t)
	plain.namespace(plain.desk, "loja", "none")
	p := plain.claim("k")
	plain.later(time.Minute)
	refused(t, "a ring too many", settle(t.Context(), plain.over(umavez.Options{Sealer: ring(t)}), Change{ID: refTo(p), Action: "happened", Status: 201}), CodeSealed)
}
