package umavezhttp

import (
	"cmp"
	"fmt"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/umavez/umavez/internal/wire"
)

// Defaults and bounds of [Options], each with its reason.
const (
	// defaultRecipe names the scope "namespace + whatever Principal returns".
	defaultRecipe = "principal"
	// defaultChallenge goes with a 401, which must carry one (RFC 9110, 15.5.2).
	defaultChallenge = "Bearer"
	// defaultWait is what an impatient second click lasts: longer than most
	// operations, shorter than any client's timeout.
	defaultWait = 5 * time.Second
	// defaultWaitMax is below the 60 s after which common proxies hang up.
	defaultWaitMax = 30 * time.Second
	// defaultMaxBody holds for requests and answers: both are kept in memory,
	// and an API that moves money sends kilobytes.
	defaultMaxBody = 1 << 20
	// defaultMaxRatio is what ordinary JSON and text never reach when they are
	// compressed; only a bomb does.
	defaultMaxRatio = 100
	// maxKeptHeader is twice what the most generous of common proxies take.
	maxKeptHeader = 64 << 10
	// maxNamespace keeps the name printable in a line.
	maxNamespace = 255
	// defaultProblemBase is where this project explains its refusals.
	defaultProblemBase = "https://github.com/umavez/umavez/blob/main/docs/http.md"
)

// Options says whose keys they are and within which limits requests are
// protected. Namespace and Principal are required; the zero value of every other
// field means its default. [New] refuses nonsense, so that no request meets it.
type Options struct {
	// Namespace separates the services, or groups of routes, that share a
	// store: 1 to 255 bytes.
	Namespace string
	// Principal says who is calling. It is called on authenticated requests
	// only: put authentication outside. Without users, choose [Anonymous].
	Principal Principal
	// Recipe names how Principal finds the caller, such as "jwt iss+sub". All
	// processes of a namespace must use the same one, since a changed scope
	// makes every running key a new key; Open fails when the store has kept
	// another. Default "principal".
	Recipe string
	// Challenge is the WWW-Authenticate of the 401 that a request gets whose
	// caller is not known. Default "Bearer".
	Challenge string

	// Headers are further names under which clients send the key, such as
	// X-Idempotency-Key or PayPal-Request-Id. Two that disagree are refused.
	Headers []string

	// Wait is how long a duplicate waits for the attempt that is running.
	// Default 5 s; negative: not at all. `Prefer: wait=N` overrides it.
	Wait time.Duration
	// WaitMax bounds what a client may ask for with Prefer. Default 30 s.
	WaitMax time.Duration

	// MaxRequestBody is the largest body, in bytes, of a request with a key. It
	// is read into memory before the claim; a larger one gets 413. Default 1 MiB.
	MaxRequestBody int64
	// MaxAnswer is the largest body of an answer, in bytes, that is kept. A
	// larger one goes out, and is not replayed. Default 1 MiB.
	MaxAnswer int64
	// MaxDecoded bounds, in bytes, what a compressed request body is decoded to
	// for comparing; beyond it the compressed bytes count. Default MaxRequestBody.
	MaxDecoded int64
	// MaxRatio bounds the same as a multiple of the compressed size. Default 100.
	MaxRatio int

	// MaxKeptRequest bounds, in bytes, what a record keeps of a request on routes
	// that say KeepRequest: header, body and some more. A longer request gets 413
	// before anything runs, since the route promises to finish what it begins.
	// Default MaxRequestBody and 64 KiB, which no header has that came through a
	// proxy: they take 8 to 32 KiB.
	MaxKeptRequest int64
	// KeepNames keeps namespace, principal and key of each record in words, for
	// operators. By default a store knows only hashes of them, so that whoever
	// reads it learns neither whose records these are nor which keys were used.
	KeepNames bool

	// ProblemBase is the "type" of problem documents, to which "#" and the code
	// are added. Default: this project's page on them.
	ProblemBase string
	// Docs is where a client's developer reads on; it becomes the Link header
	// of problem documents. Default ProblemBase.
	Docs string
	// Problem, if not nil, writes refusals instead of the problem document, for
	// an API with an error schema of its own. Retry-After, Cache-Control,
	// Stripe-Should-Retry and WWW-Authenticate are set already. It must write
	// p.Status, and say at least p.Code.
	Problem func(w http.ResponseWriter, r *http.Request, p Problem)

	// Expires adds Idempotency-Expires to answers.
	Expires bool
	// KeepCORS keeps Access-Control-* and Vary in stored answers, with the
	// request's Origin. It is for the sidecar, behind which the application
	// itself does CORS; the middleware stands inside the CORS layer.
	KeepCORS bool
}

// check fills in the defaults and refuses nonsense, naming the field.
func (o Options) check() (Options, error) {
	switch {
	case o.Namespace == "" || len(o.Namespace) > maxNamespace:
		return o, errorf("Options.Namespace has %d bytes; it needs 1 to %d", len(o.Namespace), maxNamespace)
	case o.Principal == nil:
		return o, errorf("Options.Principal is missing: it says whose keys they are, " +
			"and without it one caller could get another one's answer; " +
			"a service without callers says so with umavezhttp.Anonymous")
	}
	o.Recipe = cmp.Or(o.Recipe, defaultRecipe)
	o.Challenge = cmp.Or(o.Challenge, defaultChallenge)
	if !wire.IsFieldText(o.Challenge) {
		return o, errorf("Options.Challenge is no header value: %q", o.Challenge)
	}
	var err error
	if o.Headers, err = headerNames("Options.Headers", o.Headers); err != nil {
		return o, err
	}
	if slices.Contains(o.Headers, wire.IdempotencyKey) {
		return o, errorf("Options.Headers names %s, which is always read", wire.IdempotencyKey)
	}
	if o, err = o.checkLimits(); err != nil {
		return o, err
	}
	return o.checkAddresses()
}

func (o Options) checkLimits() (Options, error) {
	if o.WaitMax < 0 {
		return o, errorf("Options.WaitMax is negative: %v", o.WaitMax)
	}
	o.Wait = max(cmp.Or(o.Wait, defaultWait), 0)
	if o.WaitMax == 0 {
		o.WaitMax = max(defaultWaitMax, o.Wait)
	}
	if o.Wait > o.WaitMax {
		return o, errorf("Options.Wait (%v) is longer than Options.WaitMax (%v)", o.Wait, o.WaitMax)
	}
	o.MaxRequestBody = cmp.Or(o.MaxRequestBody, defaultMaxBody)
	o.MaxAnswer = cmp.Or(o.MaxAnswer, defaultMaxBody)
	o.MaxDecoded = cmp.Or(o.MaxDecoded, o.MaxRequestBody)
	o.MaxRatio = cmp.Or(o.MaxRatio, defaultMaxRatio)
	o.MaxKeptRequest = cmp.Or(o.MaxKeptRequest, o.MaxRequestBody+maxKeptHeader)
	for _, limit := range []struct {
		name  string
		value int64
	}{
		{"MaxRequestBody", o.MaxRequestBody},
		{"MaxAnswer", o.MaxAnswer},
		{"MaxDecoded", o.MaxDecoded},
		{"MaxKeptRequest", o.MaxKeptRequest},
		{"MaxRatio", int64(o.MaxRatio)},
	} {
		if limit.value < 0 {
			return o, errorf("Options.%s is negative: %d", limit.name, limit.value)
		}
	}
	return o, nil
}

func (o Options) checkAddresses() (Options, error) {
	o.ProblemBase = cmp.Or(o.ProblemBase, defaultProblemBase)
	o.Docs = cmp.Or(o.Docs, o.ProblemBase)
	if err := checkAddress("Options.ProblemBase", o.ProblemBase); err != nil {
		return o, err
	}
	if strings.Contains(o.ProblemBase, "#") {
		return o, errorf("Options.ProblemBase has a fragment; the code becomes it: %q", o.ProblemBase)
	}
	return o, checkAddress("Options.Docs", o.Docs)
}

// checkAddress refuses what would break out of the angle brackets of a Link.
func checkAddress(field, address string) error {
	if _, err := url.Parse(address); err != nil {
		return errorf("%s is no address: %w", field, err)
	}
	if strings.ContainsAny(address, "<>\" ") || !wire.IsFieldText(address) {
		return errorf("%s holds a character that an address must escape: %q", field, address)
	}
	return nil
}

// keyNames are the names under which a key is looked for. The first one is the
// name that the key goes upstream under.
func (o *Options) keyNames() []string {
	return append([]string{wire.IdempotencyKey}, o.Headers...)
}

// headerNames returns names in their canonical form, each once, as a new slice.
func headerNames(field string, names []string) ([]string, error) {
	var canonical []string
	for _, name := range names {
		if !wire.IsToken(name) {
			return nil, errorf("%s: %q is no header name", field, name)
		}
		if name = textproto.CanonicalMIMEHeaderKey(name); !slices.Contains(canonical, name) {
			canonical = append(canonical, name)
		}
	}
	return canonical, nil
}

func errorf(format string, args ...any) error {
	return fmt.Errorf("umavez: "+format, args...)
}
