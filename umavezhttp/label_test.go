package umavezhttp

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
)

// TestF12_Names: a store knows whose a key is, and which, only when it is asked
// to keep it in words.
func TestF12_Names(t *testing.T) {
	for keep, want := range map[bool]string{false: "", true: `"loja" "5:basic,5:maria," "pedido 42"`} {
		store := memstore.New(memstore.Options{})
		eng, err := umavez.New(store, umavez.Options{})
		if err != nil {
			t.Fatal(err)
		}
		once, err := New(eng, Options{Namespace: "loja", Principal: BasicUser, KeepNames: keep})
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(http.MethodPost, "/pagamentos", nil)
		r.SetBasicAuth("maria", "senha")
		r.Header.Set("Idempotency-Key", `"pedido 42"`)
		once.Opaque(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(httptest.NewRecorder(), r)
		if err := eng.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		list, err := store.List(t.Context(), umavez.Query{Limit: 10})
		if err != nil || len(list) != 1 || list[0].Label != want {
			t.Errorf("KeepNames %v: %+v, %v; want %q", keep, list, err, want)
		}
	}
}

// TestLabelIsUnambiguous: two keys never have one label, unless it had to be cut.
func TestLabelIsUnambiguous(t *testing.T) {
	labels := map[string][3]string{}
	parts := []string{"a", `a" "b`, `b`, `"`, `\`, `\"`, "é", `\u00e9`, "\xff", "a b", ""}
	for _, namespace := range parts {
		for _, principal := range parts {
			for _, name := range parts {
				this := [3]string{namespace, principal, name}
				got := label(&umavez.Key{Scope: umavez.Scope{Namespace: namespace, Principal: principal}, Name: name})
				if other, ok := labels[got]; ok {
					t.Fatalf("%q and %q are both %s", this, other, got)
				}
				labels[got] = this
				if len(got) > umavez.MaxLabel || strings.ContainsFunc(got, func(c rune) bool { return c < ' ' || c > '~' }) {
					t.Errorf("%q is %q", this, got)
				}
			}
		}
	}
}

// TestLabelIsCut: of a principal that is too long the beginning is left; key and
// namespace stay whole.
func TestLabelIsCut(t *testing.T) {
	long := umavez.Key{Scope: umavez.Scope{Namespace: "loja", Principal: strings.Repeat("p", 5000)}, Name: "k"}
	got := label(&long)
	if len(got) != umavez.MaxLabel || !strings.HasPrefix(got, `"loja" "ppp`) || !strings.HasSuffix(got, `ppp"... "k"`) {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}
