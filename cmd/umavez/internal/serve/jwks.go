package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"sync/atomic"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/MicahParks/keyfunc/v3"
	"github.com/golang-jwt/jwt/v5"
)

const (
	// jwksEvery is how often the keys are read anew, so that a key that the
	// issuer withdrew ends within it.
	jwksEvery = 5 * time.Minute
	// jwksApart is the least time between two readings that tokens asked for by
	// naming an unknown key. Anybody can name one: without a bound, each forged
	// token would be a request to the issuer.
	jwksApart = 10 * time.Second
	// jwksStale is how long keys are used when reading them anew keeps failing.
	// An issuer may be away for a weekend's night; keys that it may have
	// withdrawn a day ago are no proof of anything.
	jwksStale = 24 * time.Hour
	// jwksTimeout bounds one reading.
	jwksTimeout = 5 * time.Second
	// maxJWKS bounds what is read; a set of a hundred RSA keys has 60 KiB.
	maxJWKS = 1 << 20
)

// errKeysStale: the keys have not been read for too long to be believed.
var errKeysStale = errors.New("umavez: jwks: not readable for too long; no token can be verified")

// keySource holds the keys that verify tokens, read from a URL or a file. Use
// newKeySource, and Run for as long as it is used.
type keySource struct {
	where string
	read  func(context.Context) ([]byte, error)
	now   func() time.Time
	log   *slog.Logger

	current atomic.Pointer[keySet]
	// reading is held, by sending, by the one goroutine that reads. It guards tried.
	reading chan struct{}
	tried   time.Time
}

// keySet is one reading.
type keySet struct {
	keys keyfunc.Keyfunc
	at   time.Time
}

// newKeySource reads the keys for the first time. Without them nobody could be
// served, so a failure is the caller's reason not to start.
func newKeySource(ctx context.Context, where string, now func() time.Time, log *slog.Logger) (*keySource, error) {
	k := &keySource{where: where, now: now, log: log, reading: make(chan struct{}, 1)}
	if isHTTP(where) {
		k.read = readURL(where)
	} else {
		k.read = func(context.Context) ([]byte, error) { return readBounded(where) }
	}
	k.reading <- struct{}{}
	defer func() { <-k.reading }()
	if err := k.readNow(ctx); err != nil {
		return nil, err
	}
	return k, nil
}

func isHTTP(where string) bool {
	u, err := url.Parse(where)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https")
}

// Run reads the keys anew from time to time, until ctx ends.
func (k *keySource) Run(ctx context.Context) {
	tick := time.NewTicker(jwksEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			k.readAgain(ctx, 0)
		}
	}
}

// key finds the key that a token names. A name that is not known may be that of
// a new key: the source is asked, though not more often than jwksApart.
func (k *keySource) key(ctx context.Context, token *jwt.Token) (any, error) {
	set := k.current.Load()
	if k.now().Sub(set.at) > jwksStale {
		k.readAgain(ctx, jwksApart)
		if set = k.current.Load(); k.now().Sub(set.at) > jwksStale {
			return nil, errKeysStale
		}
	}
	key, err := set.keys.KeyfuncCtx(ctx)(token)
	if !errors.Is(err, jwkset.ErrKeyNotFound) {
		return key, err
	}
	k.readAgain(ctx, jwksApart)
	newer := k.current.Load()
	if newer == set {
		return nil, err
	}
	return newer.keys.KeyfuncCtx(ctx)(token)
}

// readAgain reads the keys, unless they were read, or the reading failed, less
// than apart ago. Whoever comes while another reads waits for that reading. A
// failure keeps the keys that are there.
func (k *keySource) readAgain(ctx context.Context, apart time.Duration) {
	select {
	case k.reading <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer func() { <-k.reading }()
	if k.now().Sub(k.tried) < apart {
		return
	}
	// Not on the request's context: a client that leaves must not end a reading
	// that others wait for.
	if err := k.readNow(context.WithoutCancel(ctx)); err != nil {
		k.log.Warn("jwks not read; the keys read before are used", "jwks", k.where,
			"age", k.now().Sub(k.current.Load().at).Round(time.Second), "error", err)
	}
}

// readNow reads the keys. The caller holds reading.
func (k *keySource) readNow(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, jwksTimeout)
	defer cancel()
	k.tried = k.now()
	text, err := k.read(ctx)
	if err != nil {
		return fmt.Errorf("umavez: jwks: %w", err)
	}
	keys, err := parseKeys(ctx, text)
	if err != nil {
		return fmt.Errorf("umavez: jwks %s: %w", k.where, err)
	}
	k.current.Store(&keySet{keys: keys, at: k.tried})
	return nil
}

// parseKeys reads a set. Keys of a kind that this program does not know are
// passed over, since issuers publish keys for others too; secrets are as well,
// for a set that anybody can read makes no secret.
func parseKeys(ctx context.Context, text []byte) (keyfunc.Keyfunc, error) {
	var set jwkset.JWKSMarshal
	if err := json.Unmarshal(text, &set); err != nil {
		return nil, err
	}
	storage := jwkset.NewMemoryStorage()
	n := 0
	for _, marshalled := range set.Keys {
		if marshalled.KTY == jwkset.KtyOct {
			continue
		}
		key, err := jwkset.NewJWKFromMarshal(marshalled, jwkset.JWKMarshalOptions{Private: true}, jwkset.JWKValidateOptions{})
		if errors.Is(err, jwkset.ErrUnsupportedKey) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := storage.KeyWrite(ctx, key); err != nil {
			return nil, err
		}
		n++
	}
	if n == 0 {
		return nil, errors.New("holds no public key that can verify a token")
	}
	return keyfunc.New(keyfunc.Options{Storage: storage, UseWhitelist: []jwkset.USE{jwkset.UseSig, ""}})
}

func readURL(where string) func(context.Context) ([]byte, error) {
	client := &http.Client{Timeout: jwksTimeout}
	return func(ctx context.Context) ([]byte, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, where, nil)
		if err != nil {
			return nil, err
		}
		req.Header.Set("Accept", "application/jwk-set+json, application/json")
		res, err := client.Do(req)
		if err != nil {
			return nil, err
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("%s: status %d", where, res.StatusCode)
		}
		return bounded(where, res.Body)
	}
}

func readBounded(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	text, err := bounded(file, f)
	return text, errors.Join(err, f.Close())
}

func bounded(where string, r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxJWKS+1))
	if err == nil && len(text) > maxJWKS {
		err = fmt.Errorf("%s: more than %d bytes", where, maxJWKS)
	}
	return text, err
}
