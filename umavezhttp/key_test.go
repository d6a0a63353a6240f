package umavezhttp

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/umavez/umavez/internal/wire"
)

var (
	oneName  = []string{wire.IdempotencyKey}
	someName = []string{wire.IdempotencyKey, "X-Idempotency-Key", "Paypal-Request-Id"}
)

// keyHeader is a header as net/http would have read it, from name and value pairs.
func keyHeader(pairs ...string) http.Header {
	h := http.Header{"Content-Type": {"application/json"}, "Accept": {"*/*"}}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

func mustKey(t *testing.T, h http.Header, names []string) string {
	t.Helper()
	key, found, err := readKey(h, names)
	if err != nil || !found {
		t.Fatalf("readKey(%v) = %q, %v, %v", h, key, found, err)
	}
	return key
}

// refusedKey returns what a client is told about its key.
func refusedKey(t *testing.T, h http.Header, names []string) string {
	t.Helper()
	key, found, err := readKey(h, names)
	invalid, ok := errors.AsType[*invalidKey](err)
	if !ok || found || key != "" {
		t.Fatalf("readKey(%v) = %q, %v, %v; want an *invalidKey", h, key, found, err)
	}
	p := invalid.problem()
	if p.Status != http.StatusBadRequest || p.Code != wire.CodeInvalidKey {
		t.Errorf("readKey(%v) is refused with %d %s", h, p.Status, p.Code)
	}
	if p.detail(portuguese) == p.detail(english) {
		t.Errorf("%q has no Portuguese", p.detail(english))
	}
	return p.detail(english)
}

func TestK2_NoKey(t *testing.T) {
	for _, h := range []http.Header{nil, {}, keyHeader(), {"Idempotency-Key": nil}, {"Idempotency-Key": {}}} {
		if key, found, err := readKey(h, someName); key != "" || found || err != nil {
			t.Errorf("readKey(%v) = %q, %v, %v", h, key, found, err)
		}
	}
}

func TestK3_QuotedAndBareAreOneKey(t *testing.T) {
	// Tokens of RFC 9651 do not begin with a digit, most UUIDs do.
	for _, key := range []string{"abc", "8e03978e-40d5-43dd-bc93-6894a57f9324", "pedido:42/1?x=y", "{a}[b]'c'<d>@e#f$g%h&i*j+k=l~m^n`o|p!"} {
		bare := mustKey(t, keyHeader("Idempotency-Key", key), oneName)
		quoted := mustKey(t, keyHeader("Idempotency-Key", `"`+key+`"`), oneName)
		params := mustKey(t, keyHeader("Idempotency-Key", `"`+key+`"; a=1; b="2"; c`), oneName)
		if bare != key || quoted != key || params != key {
			t.Errorf("%q is read as %q bare, %q quoted, %q with parameters", key, bare, quoted, params)
		}
	}
	if got := mustKey(t, keyHeader("Idempotency-Key", `"a \"b\" \\ , ;"`), oneName); got != `a "b" \ , ;` {
		t.Errorf("escapes are read as %q", got)
	}
}

func TestK4_MalformedIsRefusedNotAbsent(t *testing.T) {
	for value, want := range map[string]string{
		"":        "it is empty",
		"   ":     "it is empty",
		`""`:      "it is empty",
		`"  "`:    "it is empty",
		",":       "the byte 0x2C at position 1",
		"a,b":     "the byte 0x2C at position 2",
		"a b":     "the byte 0x20 at position 2",
		"a;b=1":   "the byte 0x3B at position 2",
		`a"b`:     "the byte 0x22 at position 2",
		`a\b`:     "the byte 0x5C at position 2",
		"chavé":   "the byte 0xC3 at position 5",
		"\xff":    "the byte 0xFF at position 1",
		`"chavé"`: "the byte 0xC3 at position 6",
		"a\tb":    "the byte 0x09 at position 2",
		`"abc`:    "the closing quotation mark is missing",
		`"a""b"`:  "is no parameter (position 4)",
		`"a" "b"`: "is no parameter (position 4)",
		`"a\n"`:   "the byte 0x6E at position 4",
	} {
		told := refusedKey(t, http.Header{"Idempotency-Key": {value}}, oneName)
		if !strings.Contains(told, want) || !strings.Contains(told, "The header Idempotency-Key ") {
			t.Errorf("of %q the client is told: %s; want it to say %q", value, told, want)
		}
	}
}

func TestK4_RefusalShowsNoValue(t *testing.T) {
	for _, value := range []string{"segredo,segredo", `"segredo`, `"segredo" segredo`, strings.Repeat("segredo", 50)} {
		_, _, err := readKey(keyHeader("Idempotency-Key", value), oneName)
		if err == nil || strings.Contains(err.Error(), "segredo") || strings.Contains(refusedKey(t, keyHeader("Idempotency-Key", value), oneName), "segredo") {
			t.Errorf("the refusal of %q tells it: %v", value, err)
		}
	}
}

func TestK5_TwoFieldLines(t *testing.T) {
	for name, h := range map[string]http.Header{
		"different":               keyHeader("Idempotency-Key", "a", "Idempotency-Key", "b"),
		"equal":                   keyHeader("Idempotency-Key", "a", "Idempotency-Key", "a"),
		"one empty":               keyHeader("Idempotency-Key", "a", "Idempotency-Key", ""),
		"joined by a proxy":       keyHeader("Idempotency-Key", "a, a"),
		"quoted, joined":          keyHeader("Idempotency-Key", `"a", "a"`),
		"under another map key":   {"Idempotency-Key": {"a"}, "idempotency-key": {"a"}},
		"twice under another one": {"idempotency-key": {"a", "a"}},
		"of another name":         keyHeader("X-Idempotency-Key", "a", "X-Idempotency-Key", "a"),
	} {
		t.Run(name, func(t *testing.T) { refusedKey(t, h, someName) })
	}
	told := refusedKey(t, keyHeader("Idempotency-Key", "a", "Idempotency-Key", "a"), oneName)
	if !strings.Contains(told, "The header Idempotency-Key stands there more than once") {
		t.Errorf("the client is told: %s", told)
	}
}

func TestK6_Length(t *testing.T) {
	full := strings.Repeat("k", 255)
	escaped := strings.Repeat(`\"`, 255)
	if got := mustKey(t, keyHeader("Idempotency-Key", full), oneName); got != full {
		t.Errorf("255 bytes are read as %d", len(got))
	}
	if got := mustKey(t, keyHeader("Idempotency-Key", `"`+escaped+`"`), oneName); len(got) != 255 {
		t.Errorf("255 bytes, escaped, are read as %d", len(got))
	}
	for _, value := range []string{full + "k", `"` + full + `k"`, `"` + escaped + `k"`, strings.Repeat("k", 1<<20)} {
		if told := refusedKey(t, keyHeader("Idempotency-Key", value), oneName); !strings.Contains(told, "more than 255 bytes") {
			t.Errorf("of %d bytes the client is told: %s", len(value), told)
		}
	}
}

func TestK7_ExactBytes(t *testing.T) {
	seen := map[string]string{}
	for _, value := range []string{
		"8e03978e-40d5-43dd-bc93-6894a57f9324", "8E03978E-40D5-43DD-BC93-6894A57F9324",
		"8e03978e40d543ddbc936894a57f9324", "{8e03978e-40d5-43dd-bc93-6894a57f9324}",
		`"k"`, `"k "`, `" k"`, "K", "k%20", "'k'",
	} {
		key := mustKey(t, keyHeader("Idempotency-Key", value), oneName)
		if other, ok := seen[key]; ok {
			t.Errorf("%s and %s are one key: %q", other, value, key)
		}
		seen[key] = value
	}
}

func TestK8_OtherNames(t *testing.T) {
	for _, h := range []http.Header{
		keyHeader("X-Idempotency-Key", "a"),
		keyHeader("paypal-request-id", `"a"`),
		keyHeader("Idempotency-Key", "a", "X-Idempotency-Key", `"a"`, "PayPal-Request-Id", "a"),
		{"x-idempotency-key": {"a"}},
	} {
		if got := mustKey(t, h, someName); got != "a" {
			t.Errorf("readKey(%v) = %q", h, got)
		}
	}
	if _, found, err := readKey(keyHeader("X-Idempotency-Key", "a"), oneName); found || err != nil {
		t.Errorf("a name that is not configured is read: %v, %v", found, err)
	}
	told := refusedKey(t, keyHeader("X-Idempotency-Key", "a", "PayPal-Request-Id", "b"), someName)
	if !strings.Contains(told, "X-Idempotency-Key and Paypal-Request-Id hold different keys") {
		t.Errorf("the client is told: %s", told)
	}
	told = refusedKey(t, keyHeader("Idempotency-Key", "a", "X-Idempotency-Key", ","), someName)
	if !strings.Contains(told, "The header X-Idempotency-Key is not a valid key") {
		t.Errorf("the client is told: %s", told)
	}
}

// TestReadKeyAllocates: a request without a key, and one with the usual spelling
// of one, cost nothing.
func TestReadKeyAllocates(t *testing.T) {
	for name, h := range map[string]http.Header{
		"no key": keyHeader(),
		"bare":   keyHeader("Idempotency-Key", "8e03978e-40d5-43dd-bc93-6894a57f9324"),
		"quoted": keyHeader("Idempotency-Key", `"8e03978e-40d5-43dd-bc93-6894a57f9324"`),
	} {
		if n := testing.AllocsPerRun(100, func() {
			if _, _, err := readKey(h, someName); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
