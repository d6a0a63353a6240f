package sqlitestore

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/keyring"
	"github.com/umavez/umavez/umavezhttp"
)

// What the payments of this file hold. Each is long enough to be nowhere by
// chance.
const (
	sealedCard      = "4111111111111111"
	sealedPrincipal = "conta-da-maria-7731"
	secretAnswer    = "autorizacao-resposta-secreta-1"
	secretLast      = "ultima-palavra-secreta-2"
	secretStep      = "resultado-do-passo-secreto-3"
	secretFinal     = "resultado-final-secreto-4"
	secretRequest   = "pedido-guardado-secreto-5"
	secretNote      = "nota-ao-vivo-secreta-6"
	secretSettled   = "acertada-a-mao-secreta-7"
	secretName      = "chave-do-cliente-secreta-8"
)

// kept are those that a record holds; the others are only hashed.
var kept = []string{secretAnswer, secretLast, secretStep, secretFinal, secretRequest, secretNote, secretSettled}

// hashed are in requests, and in no record.
var hashed = []string{sealedCard, sealedPrincipal, secretName}

// payments is a service whose operations end in every way, and what it logs.
type payments struct {
	t   *testing.T
	eng *umavez.Engine
	mux *http.ServeMux
	log lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newPayments(t *testing.T, s *Store, sealer umavez.Sealer) *payments {
	t.Helper()
	p := &payments{t: t, mux: http.NewServeMux()}
	var err error
	p.eng, err = umavez.New(s, umavez.Options{
		Sealer: sealer, ClaimTimeout: unhurried, SaveTimeout: unhurried,
		Observe: func(o umavez.Observation) { fmt.Fprintf(&p.log, "%+v\n", o) },
	})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&p.log, "%+v\n", sealer)
	once, err := umavezhttp.New(p.eng, umavezhttp.Options{
		Namespace: "loja", Principal: func(r *http.Request) (string, error) { return r.Header.Get("X-Conta"), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	answer := func(status int, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, text)
		}
	}
	p.mux.Handle("POST /pagamentos", once.Opaque(answer(201, secretAnswer)))
	p.mux.Handle("POST /falha", once.Opaque(answer(500, secretLast)))
	p.mux.Handle("POST /passos", once.Stepped(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := umavez.Step(r.Context(), "cobrar", func(context.Context, string) (string, error) { return secretStep, nil })
		if err == nil {
			_, err = umavez.Step(r.Context(), "enviar", func(context.Context, string) (string, error) {
				return "", umavez.Final(fmt.Errorf("recusado: %s", secretFinal))
			})
		}
		answer(503, fmt.Sprint(err))(w, r)
	})))
	return p
}

// post sends a payment, and returns the status.
func (p *payments) post(path, key, principal, card string) int {
	body := fmt.Sprintf(`{"valor": 1050, "cartao": %q}`, card)
	r := httptest.NewRequestWithContext(p.t.Context(), http.MethodPost, path, strings.NewReader(body))
	server := &http.Server{ErrorLog: log.New(&p.log, "", 0)}
	r = r.WithContext(context.WithValue(r.Context(), http.ServerContextKey, server))
	r.Header.Set("Idempotency-Key", key)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Conta", principal)
	w := httptest.NewRecorder()
	p.mux.ServeHTTP(w, r)
	return w.Code
}

// operation is one that is run without HTTP.
func (p *payments) operation(name string) umavez.Operation {
	return umavez.Operation{
		Key:    umavez.Key{Scope: umavez.Scope{Namespace: "loja", Principal: sealedPrincipal}, Name: name},
		Policy: umavez.Stepped, Route: "filas", Request: []byte(secretRequest),
	}
}

func (p *payments) claim(name string) *umavez.Attempt {
	p.t.Helper()
	a, rec, err := p.eng.Claim(p.t.Context(), p.operation(name))
	if err != nil || a == nil {
		p.t.Fatalf("claim of %s: %v, record %v", name, err, rec.State)
	}
	return a
}

// all runs payments to every end that there is, with what each keeps.
func (p *payments) all() {
	p.t.Helper()
	must := func(err error) {
		p.t.Helper()
		if err != nil {
			p.t.Fatal(err)
		}
	}
	for _, c := range []struct {
		path, key, principal string
		want                 int
	}{
		{"/pagamentos", "pedido-1", sealedPrincipal, 201},
		{"/pagamentos", "pedido-1", sealedPrincipal, 201}, // its replay
		{"/pagamentos", sealedCard, sealedPrincipal, 201}, // a key that is a card
		{"/pagamentos", "pedido-2", sealedCard, 201},      // a caller who is one
		{"/pagamentos", secretName, sealedPrincipal, 201},
		{"/falha", "pedido-3", sealedPrincipal, 500},
		{"/passos", "pedido-4", sealedPrincipal, 503},
	} {
		if got := p.post(c.path, c.key, c.principal, sealedCard); got != c.want {
			p.t.Fatalf("%s with key %s: %d, want %d; log %s", c.path, c.key, got, c.want, p.log.String())
		}
	}
	if got := p.post("/pagamentos", "pedido-1", sealedPrincipal, "4222222222222220"); got != 422 {
		p.t.Fatalf("a key reused: %d", got)
	}
	lost := p.claim("settled")
	must(lost.Abandon(umavez.ReasonReset, []byte(secretLast)))
	must(p.eng.Settle(p.t.Context(), lost.Lease().ID, umavez.Settlement{
		Action: umavez.ActionHappened, Fence: lost.Lease().Fence, Answer: []byte(secretSettled), Who: "ana", Why: "visto",
	}))
	noted := p.claim("noted")
	must(noted.Note([]byte(secretNote)))
	must(noted.Abandon(umavez.ReasonBroken, nil))
	_, err := umavez.Do(p.t.Context(), p.eng, p.operation("done"), func(context.Context) (string, error) { return secretAnswer, nil })
	must(err)
}

// runPayments fills a file, and closes it.
func runPayments(t *testing.T, path string, sealer umavez.Sealer) {
	t.Helper()
	s, err := Open(t.Context(), path, Options{BusyTimeout: unhurried, batchTime: unhurried})
	if err != nil {
		t.Fatal(err)
	}
	p := newPayments(t, s, sealer)
	p.all()
	p.end(s)
}

func (p *payments) end(s *Store) {
	p.t.Helper()
	if err := p.eng.Close(context.Background()); err != nil {
		p.t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		p.t.Fatal(err)
	}
}

// shapes are the forms in which a text could lie in a file: as it is, in
// hexadecimal, and in base64 from each of its three offsets.
func shapes(secret string) (all []string) {
	all = append(all, secret, hex.EncodeToString([]byte(secret)), strings.ToUpper(hex.EncodeToString([]byte(secret))))
	for offset := range 3 {
		encoded := base64.StdEncoding.EncodeToString([]byte("xx"[:offset] + secret))
		// The ends depend on what stands beside it.
		encoded = strings.TrimRight(encoded, "=")
		all = append(all, encoded[[]int{0, 2, 3}[offset]:len(encoded)-2])
	}
	return all
}

func holds(text, secret string) bool {
	for _, shape := range shapes(secret) {
		if strings.Contains(text, shape) {
			return true
		}
	}
	return false
}

// filesOf reads every file in the folder of a store, by name: the database, its
// WAL and shared memory, and the start logs.
func filesOf(t *testing.T, path string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(filepath.Dir(path), func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		files[filepath.Base(name)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// findSecrets says which of the secrets are where, looking at the files while the
// store is open and after it was closed, and at the log.
func findSecrets(t *testing.T, sealer umavez.Sealer) (found map[string][]string, files map[string]string, logged string) {
	t.Helper()
	path := file(t)
	s, err := Open(t.Context(), path, Options{BusyTimeout: unhurried, batchTime: unhurried})
	if err != nil {
		t.Fatal(err)
	}
	p := newPayments(t, s, sealer)
	was := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&p.log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	defer slog.SetDefault(was)
	p.all()
	damage(t, s)
	p.post("/pagamentos", "pedido-1", sealedPrincipal, sealedCard) // is logged
	files = filesOf(t, path)
	p.end(s)
	places := map[string]string{"the log": p.log.String()}
	for name, text := range files {
		places["open "+name] = text
	}
	for name, text := range filesOf(t, path) {
		places["closed "+name] = text
	}
	found = map[string][]string{}
	for place, text := range places {
		for _, secret := range append(append([]string(nil), kept...), hashed...) {
			if holds(text, secret) {
				found[secret] = append(found[secret], place)
			}
		}
	}
	return found, files, p.log.String()
}

// damage makes every answer unreadable, so that reading one says so.
func damage(t *testing.T, s *Store) {
	t.Helper()
	_, err := s.Rewrite(t.Context(), umavez.ID{}, 100, func(_ umavez.ID, rec *umavez.Record) error {
		if len(rec.Answer) > 0 {
			rec.Answer = append(bytes.Clone(rec.Answer[:len(rec.Answer)-1]), rec.Answer[len(rec.Answer)-1]^1)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestNoSecretIsStored: with a ring, nothing of what requests and answers hold is
// in the database, its WAL, its shared memory or the start logs, open or closed,
// nor in a log at debug level. Without one, the same search finds all that is kept.
func TestNoSecretIsStored(t *testing.T) {
	found, files, logged := findSecrets(t, newRings(t)("a"))
	for secret, places := range found {
		t.Errorf("%q is in %v", secret, places)
	}
	for _, suffix := range []string{".db", ".db-wal", ".db-shm"} {
		if files["umavez"+suffix] == "" {
			t.Errorf("there was no file umavez%s to look at; there were %d others", suffix, len(files))
		}
	}
	for _, said := range []string{"Moment:completed", "Moment:key_reused", "cannot be opened"} {
		if !strings.Contains(logged, said) {
			t.Errorf("the log does not speak of %q: %.300s", said, logged)
		}
	}
	plain, _, _ := findSecrets(t, nil)
	for _, secret := range kept {
		if len(plain[secret]) == 0 {
			t.Errorf("without a ring, the search does not find %q: it finds nothing", secret)
		}
	}
}

// TestRotationInAFile: a file that was written under one key is sealed anew while
// its service runs, opened again without that key, and answers as before.
func TestRotationInAFile(t *testing.T) {
	path, ring := file(t), newRings(t)
	runPayments(t, path, ring("old"))
	s := open(t, path, Options{})
	moving := newPayments(t, s, ring("new", "old"))
	if got := moving.post("/pagamentos", "pedido-1", sealedPrincipal, sealedCard); got != 201 {
		t.Errorf("with a new key first, a replay is %d", got)
	}
	done, err := moving.eng.Reseal(t.Context(), nil)
	if err != nil || done.Unreadable != 0 || done.Sealed != done.Seen || done.Seen < 9 || done.Namespaces != 1 {
		t.Fatalf("sealed anew: %+v, %v", done, err)
	}
	moving.end(s)
	s = open(t, path, Options{})
	p := newPayments(t, s, ring("new"))
	if got := p.post("/pagamentos", "pedido-1", sealedPrincipal, sealedCard); got != 201 {
		t.Errorf("without the old key, a replay is %d: %s", got, p.log.String())
	}
	if got := p.post("/passos", "pedido-4", sealedPrincipal, sealedCard); got != 503 {
		t.Errorf("without the old key, an operation with steps goes on to %d: %s", got, p.log.String())
	}
	if lost := p.claim("noted"); lost.Lease().Fence == 0 {
		t.Error("a lost record is not taken over")
	} else if err := lost.Complete([]byte("fim")); err != nil {
		t.Error(err)
	}
	p.end(s)
}

// newRings returns what makes rings of named keys: the same name, the same key.
func newRings(t *testing.T) func(ids ...string) *keyring.Ring {
	t.Helper()
	lines := map[string]string{}
	return func(ids ...string) *keyring.Ring {
		t.Helper()
		var text string
		for _, id := range ids {
			if lines[id] == "" {
				var err error
				if lines[id], err = keyring.Generate(id); err != nil {
					t.Fatal(err)
				}
			}
			text += lines[id] + "\n"
		}
		r, err := keyring.Parse([]byte(text), false)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
}

// TestMovedInAFile: somebody who writes to the file gives one caller's answer to
// another. It does not open, and nothing runs again.
func TestMovedInAFile(t *testing.T) {
	path, ring := file(t), newRings(t)("a")
	runPayments(t, path, ring)
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // the copy below is its connection's own
	if _, err := db.ExecContext(t.Context(), "CREATE TEMP TABLE was AS SELECT id, answer FROM umavez_record WHERE answer IS NOT NULL"); err != nil {
		t.Fatal(err)
	}
	result, err := db.ExecContext(t.Context(),
		"UPDATE umavez_record SET answer = (SELECT answer FROM was WHERE was.id <> umavez_record.id LIMIT 1) WHERE answer IS NOT NULL")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := result.RowsAffected(); err != nil || n < 5 {
		t.Fatalf("moved %d answers, %v", n, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s := open(t, path, Options{})
	p := newPayments(t, s, ring)
	for _, key := range []string{"pedido-1", sealedCard, secretName} {
		if got := p.post("/pagamentos", key, sealedPrincipal, sealedCard); got != 409 {
			t.Errorf("with key %s: %d, want 409", key, got)
		}
	}
	if !strings.Contains(p.log.String(), "cannot be opened") || strings.Contains(p.log.String(), "Moment:started") {
		t.Errorf("the log says %s", p.log.String())
	}
	p.end(s)
}
