package keyring_test

import (
	"bytes"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/keyring"
)

var _ umavez.Sealer = (*keyring.Ring)(nil)

// secretOf is a key that is the same in every run.
func secretOf(name string) []byte {
	sum := sha256.Sum256([]byte("a key of the tests: " + name))
	return sum[:]
}

func lineOf(id string, secret []byte) string {
	return id + ":" + base64.StdEncoding.EncodeToString(secret) + "\n"
}

// ringOf is a ring of named keys, each with the secret of its name.
func ringOf(t testing.TB, ids ...string) *keyring.Ring {
	t.Helper()
	var text string
	for _, id := range ids {
		text += lineOf(id, secretOf(id))
	}
	return parse(t, text, false)
}

func parse(t testing.TB, text string, allowPlain bool) *keyring.Ring {
	t.Helper()
	r, err := keyring.Parse([]byte(text), allowPlain)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func seal(t testing.TB, r *keyring.Ring, text, data string) []byte {
	t.Helper()
	sealed, err := r.Seal([]byte(text), []byte(data))
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

func counting(from, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(from + i)
	}
	return b
}

// TestKnownAnswers pins the sealed form. The answers were worked out by another
// implementation (Python's hmac, and AES-GCM of OpenSSL), from the description
// in ring.go: what is in a store today must open for ever.
func TestKnownAnswers(t *testing.T) {
	for _, c := range []struct {
		id         string
		secret     []byte
		text, data string
		want       string
	}{
		{"a", counting(1, 32), "", "", "fb757a0101618b61b83f136e8391444a8be8f47921704115c1cecabf650805cb3d2d"},
		{
			"2026-03", counting(1, 32), `{"valor":1050,"cartao":"4111111111111111"}`, "record",
			"fb757a0107323032362d303397f255de7839e205f8d1ebbcab378fef03744d3657bdbc238adfc2d6334dd4664125b09685ab83791f0c5cf6b4f492c6914ba8961d50e1716597d31ab2d658763707813893d7",
		},
		{
			strings.Repeat("x", 32), sum("b"), string(counting(0, 256)), strings.Repeat("d", 300),
			"fb757a0120787878787878787878787878787878787878787878787878787878787878787829b00cd22b5c62642b9ad3b527d10beebe0d410d677cc9777b657ac716e23542e037d253453bf82067da5ac57490eaec0e84efcb1d6a1fbaaaf894fe9f9e3b3c16c6a8bf1d520f2725243a01a5fd33d72798ee130f4db5fd710456ae0691b1470340fc865eea5acdf9010996895d2f1ab3175b0c4c8ee377f06971b7815669aebf61bf793e2d36bdd4728673368b32aa3adf37ec2f6e4d48953f8cc2c0bdc9676e7f8b5bceff9dd0e01cc17ac923e29b41ba0ad0d0924d45fe00877e1443a0c7af68e95869646e4ce65fc0c0c78dd544868341a4c8bfc243f358e73917d63d9aa04b9fcdcb989191968e657fe8aeecba27761ba4e3045d1365fc632777bec867442d128f31b72a521e8752cebaaa77c1c8c92fee81d59a9bb54e0139",
		},
	} {
		r := parse(t, lineOf(c.id, c.secret), false)
		sealed := seal(t, r, c.text, c.data)
		if got := hex.EncodeToString(sealed); got != c.want {
			t.Errorf("key %s: sealed %s, want %s", c.id, got, c.want)
		}
		if text, err := r.Open(sealed, []byte(c.data)); err != nil || string(text) != c.text {
			t.Errorf("key %s: opened %q, %v", c.id, text, err)
		}
		if len(sealed)-len(c.text) > keyring.MaxOverhead {
			t.Errorf("key %s: sealed is %d bytes longer than the text, at most %d", c.id, len(sealed)-len(c.text), keyring.MaxOverhead)
		}
	}
}

func sum(s string) []byte { h := sha256.Sum256([]byte(s)); return h[:] }

func TestSameTextHasSameForm(t *testing.T) {
	r := ringOf(t, "a")
	first := seal(t, r, "aprovado", "one")
	if !bytes.Equal(first, seal(t, ringOf(t, "a", "b"), "aprovado", "one")) {
		t.Error("the same text under the same data and key has two forms: a repeated store call would be another one")
	}
	for what, other := range map[string][]byte{
		"another text": seal(t, r, "aprovada", "one"),
		"other data":   seal(t, r, "aprovado", "two"),
		"another key":  seal(t, ringOf(t, "b"), "aprovado", "one"),
	} {
		// Behind the head, nothing may be alike: neither the nonce nor the text.
		head := len("\xfbuz\x01") + 2
		if bytes.Equal(first[head:head+12], other[head:head+12]) {
			t.Errorf("%s has the same nonce", what)
		}
		if bytes.Equal(first[head+12:head+20], other[head+12:head+20]) {
			t.Errorf("%s has the same cipher text", what)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	r := ringOf(t, "a")
	sealed := seal(t, r, "aprovado", "one")
	for _, c := range []struct {
		name   string
		sealed []byte
		data   string
		want   error
	}{
		{"other data", sealed, "two", keyring.ErrDamaged},
		{"no data", sealed, "", keyring.ErrDamaged},
		{"another key", seal(t, ringOf(t, "b"), "aprovado", "one"), "one", keyring.ErrUnknownKey},
		{"another key of the same id", seal(t, parse(t, lineOf("a", secretOf("b")), false), "aprovado", "one"), "one", keyring.ErrDamaged},
		{"plain", []byte("aprovado"), "one", keyring.ErrPlain},
		{"nothing", nil, "one", keyring.ErrPlain},
		{"a later version", append([]byte("\xfbuz\x02"), sealed[4:]...), "one", keyring.ErrPlain},
		{"cut off", sealed[:len(sealed)-1], "one", keyring.ErrDamaged},
		{"only a beginning", sealed[:4], "one", keyring.ErrDamaged},
		{"an id that is none", []byte("\xfbuz\x01\x01\n" + strings.Repeat("x", 40)), "one", keyring.ErrDamaged},
	} {
		if text, err := r.Open(c.sealed, []byte(c.data)); !errors.Is(err, c.want) || text != nil {
			t.Errorf("%s: opened %q, error %v, want %v", c.name, text, err, c.want)
		}
	}
	for i := range sealed {
		bent := bytes.Clone(sealed)
		bent[i] ^= 1
		if text, err := r.Open(bent, []byte("one")); err == nil {
			t.Fatalf("with a bit of byte %d turned over it opens, as %q", i, text)
		}
	}
}

// TestOnlyTheOneForm: a text that somebody with the key sealed under a nonce of
// their own is not taken, since it would be a second form of it.
func TestOnlyTheOneForm(t *testing.T) {
	r := ringOf(t, "a")
	forged := sealWithNonce(t, "a", secretOf("a"), make([]byte, 12), "aprovado", "one")
	if _, err := r.Open(forged, []byte("one")); !errors.Is(err, keyring.ErrDamaged) {
		t.Errorf("opened with a drawn nonce: %v, want ErrDamaged", err)
	}
	own := seal(t, r, "aprovado", "one")
	if same := sealWithNonce(t, "a", secretOf("a"), own[6:18], "aprovado", "one"); !bytes.Equal(same, own) {
		t.Errorf("the test seals otherwise than the ring: %x, %x", same, own)
	}
}

func TestChangingTheKey(t *testing.T) {
	before, both, after := ringOf(t, "old"), ringOf(t, "new", "old"), ringOf(t, "new")
	sealed := seal(t, before, "aprovado", "one")
	text, err := both.Open(sealed, []byte("one"))
	if err != nil || string(text) != "aprovado" {
		t.Fatalf("opened %q, %v, with the older key", text, err)
	}
	if before.Stale(sealed) || !both.Stale(sealed) || !both.Stale([]byte("plain")) || !both.Stale(nil) {
		t.Error("stale is what is in plain or under another key than the one that seals")
	}
	anew := seal(t, both, string(text), "one")
	if both.Stale(anew) {
		t.Error("what was just sealed is stale")
	}
	if text, err := after.Open(anew, []byte("one")); err != nil || string(text) != "aprovado" {
		t.Errorf("opened %q, %v, without the older key", text, err)
	}
	if _, err := after.Open(sealed, []byte("one")); !errors.Is(err, keyring.ErrUnknownKey) || !strings.Contains(err.Error(), `"old"`) {
		t.Errorf("without the key: %v; the error should name it", err)
	}
	if both.Active() != "new" || fmt.Sprint(both.IDs()) != "[new old]" {
		t.Errorf("the ring says of itself: active %s, ids %v", both.Active(), both.IDs())
	}
}

// TestIDsThatBeginAlike: "a" is no key of "ab".
func TestIDsThatBeginAlike(t *testing.T) {
	r := ringOf(t, "a", "ab")
	if sealed := seal(t, ringOf(t, "ab"), "x", ""); !r.Stale(sealed) {
		t.Error("sealed with ab, taken for a")
	}
}

func TestPlainIsTakenWhereAllowed(t *testing.T) {
	r := parse(t, lineOf("a", secretOf("a")), true)
	if text, err := r.Open([]byte("aprovado"), []byte("one")); err != nil || string(text) != "aprovado" {
		t.Errorf("opened %q, %v", text, err)
	}
	// What is sealed is held to the rules all the same.
	if _, err := r.Open(seal(t, r, "aprovado", "one"), []byte("two")); !errors.Is(err, keyring.ErrDamaged) {
		t.Errorf("moved, and opened: %v", err)
	}
	if !r.AllowsPlain() || ringOf(t, "a").AllowsPlain() {
		t.Error("AllowsPlain does not say what was asked for")
	}
}

// TestPrintingShowsNoKey: whichever way a ring gets into a log.
func TestPrintingShowsNoKey(t *testing.T) {
	r := ringOf(t, "a", "b")
	options := struct {
		Sealer umavez.Sealer
		Value  keyring.Ring
	}{r, *r}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
		fmt.Fprintf(&out, verb+"\n", r)
		fmt.Fprintf(&out, verb+"\n", options.Sealer)
		fmt.Fprintf(&out, verb+"\n", options.Value)
		fmt.Fprintf(&out, verb+"\n", options)
	}
	fmt.Fprintf(&out, "%+v\n", options.Sealer)
	level := &slog.HandlerOptions{Level: slog.LevelDebug}
	slog.New(slog.NewTextHandler(&out, level)).Debug("ring", "r", r, "o", options.Sealer)
	slog.New(slog.NewJSONHandler(&out, level)).Debug("ring", "r", r, "o", options)
	for _, id := range []string{"a", "b"} {
		made, err := hkdf.Extract(sha256.New, secretOf(id), []byte("umavez keyring 1"))
		if err != nil {
			t.Fatal(err)
		}
		for _, shown := range append(shapes(secretOf(id)), shapes(made)...) {
			if strings.Contains(out.String(), shown) {
				t.Errorf("printing shows a key, or what is made of it: %s", out.String())
			}
		}
	}
	if !strings.Contains(out.String(), `key ring ["a" "b"]`) {
		t.Errorf("printing does not name the keys: %s", out.String())
	}
}

// shapes are the ways in which bytes show in a text.
func shapes(b []byte) []string {
	return []string{
		string(b[:8]), hex.EncodeToString(b[:8]), strings.ToUpper(hex.EncodeToString(b[:8])),
		base64.StdEncoding.EncodeToString(b)[:10], strings.Trim(fmt.Sprintf("%d", b[:8]), "[]"), fmt.Sprintf("%#v", b[:6])[7:30],
	}
}
