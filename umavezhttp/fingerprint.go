package umavezhttp

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/umavez/umavez"
)

// What makes two requests "the same request" (rule F3). The fingerprint is a
// keyed hash over the parts below, each with its length in front. The key is the
// namespace's: without it, a stored hash would give up a card number to a
// dictionary within a second.

// fingerprintVersion is raised whenever one request would get another sum. The
// code of the version before then has to stay for one retention.
const fingerprintVersion = 1

// The parts, in the order in which they are hashed and hinted at.
const (
	partMethod = iota
	partPath
	partQuery
	partType
	partBody
	partHeaders
	partHost
	partCount
)

// partNames are what a client reads in a problem document's "differs". Headers
// and host, which count only on routes that say so, go by their own names.
var partNames = [partCount]string{"method", "path", "query", "type", "body", "headers", "host"}

// fingerprintOptions says how requests are compared.
type fingerprintOptions struct {
	// Raw: the body counts byte by byte.
	Raw bool
	// Exclude are JSON pointers to what does not count.
	Exclude []string
	// Headers are canonical names of headers that count.
	Headers []string
	// Host: the host counts.
	Host bool
	// MaxDecoded and MaxRatio bound the decoding of compressed bodies.
	MaxDecoded int64
	MaxRatio   int
}

// fingerprinter compares the requests of one route. It is made at wiring time
// and safe for concurrent use.
type fingerprinter struct {
	opt     fingerprintOptions
	exclude *pointerNode
	recipe  uint32
	// formerly knows how the route compared before.
	formerly []*fingerprinter
	// hashers are kept here, and not in one pool for all, since each is set up
	// with the key of one namespace.
	hashers sync.Pool
}

// newFingerprinter checks the options. formerly are those of earlier releases
// of the service, whose records are still within their retention.
func newFingerprinter(opt fingerprintOptions, formerly ...fingerprintOptions) (*fingerprinter, error) {
	exclude, err := parsePointers(opt.Exclude)
	switch {
	case err != nil:
		return nil, err
	case opt.Raw && exclude != nil:
		return nil, errors.New("raw bodies are not looked into, so Raw and Exclude contradict each other")
	case slices.Contains(opt.Headers, "Host"):
		return nil, errors.New("the host is no header here: use Host to compare it")
	}
	opt.Exclude = sortedSet(opt.Exclude)
	opt.Headers = sortedSet(opt.Headers)
	f := &fingerprinter{opt: opt, exclude: exclude, recipe: recipeOf(opt)}
	f.hashers.New = func() any { return new(hasher) }
	for _, before := range formerly {
		old, err := newFingerprinter(before)
		if err != nil {
			return nil, err
		}
		f.formerly = append(f.formerly, old)
	}
	return f, nil
}

// recipeOf names a way of comparing: two that could give one request different
// sums have different names. It is never 0, the recipe of "told apart by key alone".
func recipeOf(opt fingerprintOptions) uint32 {
	b := []byte("umavez recipe\x00")
	b = binary.BigEndian.AppendUint32(b, fingerprintVersion)
	b = append(b, boolByte(opt.Raw), boolByte(opt.Host))
	b = binary.BigEndian.AppendUint64(b, uint64(opt.MaxDecoded))
	b = binary.BigEndian.AppendUint64(b, uint64(opt.MaxRatio))
	for _, list := range [...][]string{opt.Exclude, opt.Headers} {
		b = binary.AppendUvarint(b, uint64(len(list)))
		for _, s := range list {
			b = appendPart(b, s)
		}
	}
	sum := sha256.Sum256(b)
	return max(binary.BigEndian.Uint32(sum[:]), 1)
}

// sum fingerprints a request whose whole body is body, as the route compares now.
// It goes by what was received and must be called before the handler, which may
// change the request. For usual requests it allocates nothing.
func (f *fingerprinter) sum(key *[32]byte, r *http.Request, body []byte) umavez.Fingerprint {
	h := f.hashers.Get().(*hasher)
	defer f.hashers.Put(h)
	return f.sumWith(h, key, r, body)
}

func (f *fingerprinter) sumWith(h *hasher, key *[32]byte, r *http.Request, body []byte) umavez.Fingerprint {
	h.begin(key)
	fp := umavez.Fingerprint{Recipe: f.recipe}
	path, query := target(r)
	media := parseMediaType(r.Header["Content-Type"])

	h.open()
	h.msg = append(h.msg, r.Method...)
	h.close(&fp, partMethod)
	h.open()
	h.msg = append(h.msg, path...)
	h.close(&fp, partPath)
	h.open()
	h.msg = append(h.msg, query...)
	h.close(&fp, partQuery)
	h.open()
	h.msg = media.append(h.msg)
	h.close(&fp, partType)
	h.open()
	f.appendBody(h, r, media, body)
	h.close(&fp, partBody)
	h.open()
	for _, name := range f.opt.Headers {
		values := r.Header[name]
		h.msg = binary.AppendUvarint(h.msg, uint64(len(values)))
		for _, v := range values {
			h.msg = appendPart(h.msg, v)
		}
	}
	h.close(&fp, partHeaders)
	h.open()
	if f.opt.Host {
		h.msg = appendLower(h.msg, r.Host)
	}
	h.close(&fp, partHost)

	h.end(&fp)
	return fp
}

// sumBy fingerprints a request by the recipe of a record. false: the recipe is
// not known here, and nobody can say whether it is the same request.
func (f *fingerprinter) sumBy(recipe uint32, key *[32]byte, r *http.Request, body []byte) (umavez.Fingerprint, bool) {
	if recipe == f.recipe {
		return f.sum(key, r, body), true
	}
	for _, old := range f.formerly {
		if recipe == old.recipe {
			return old.sum(key, r, body), true
		}
	}
	return umavez.Fingerprint{}, false
}

// differs names the parts in which two requests differ, by the hints in their
// fingerprints. When all hints agree and the sums do not, two different bodies
// met by chance: of the parts, only a body is drawn from that many.
func differs(a, b umavez.Fingerprint) []string {
	if a.Recipe != b.Recipe || a.Sum == b.Sum {
		return nil
	}
	var names []string
	for i, name := range partNames {
		if a.Parts[i] != b.Parts[i] {
			names = append(names, name)
		}
	}
	if names == nil {
		names = []string{partNames[partBody]}
	}
	return names
}

// target returns the path and the query as the client sent them. r.URL will not
// do: a handler outside may have stripped a prefix of it, and two operations
// would have one path.
func target(r *http.Request) (path, query string) {
	if strings.HasPrefix(r.RequestURI, "/") {
		path, query, _ = strings.Cut(r.RequestURI, "?")
		return path, query
	}
	// Absolute form, as clients of a proxy send it, or a request made by hand.
	return r.URL.EscapedPath(), r.URL.RawQuery
}

// sortedSet returns a sorted copy without repetitions: their order says nothing.
func sortedSet(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}

func boolByte(b bool) byte {
	if b {
		return 1
	}
	return 0
}
