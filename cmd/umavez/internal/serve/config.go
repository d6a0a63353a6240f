package serve

import (
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"github.com/umavez/umavez/cmd/umavez/internal/keys"
	"github.com/umavez/umavez/keyring"
	"github.com/umavez/umavez/umavezhttp"
)

// What a setting is when nobody wrote it.
const (
	DefaultNamespace = keys.DefaultNamespace
	DefaultListen    = "127.0.0.1:8081"
	DefaultAdmin     = "127.0.0.1:9091"
	DefaultStore     = "sqlite:umavez.db"
	// DefaultAuthHeader is what common authenticating services use.
	DefaultAuthHeader = "X-Auth-Request-User"
	DefaultLease      = 15 * time.Second
	DefaultRetain     = 24 * time.Hour
	DefaultTombstone  = 30 * 24 * time.Hour
	DefaultWait       = 5 * time.Second
	// DefaultWaitMax is below the 60 s after which load balancers commonly give up.
	DefaultWaitMax = 30 * time.Second
	DefaultMaxRun  = 5 * time.Minute
	// DefaultDrain stays below the 30 s after which Kubernetes kills.
	DefaultDrain     = 25 * time.Second
	DefaultLogFormat = "text"
	DefaultLogLevel  = "info"
	// DefaultMaxBody and DefaultMaxAnswer are in bytes. Both bodies are in memory
	// while their request is here.
	DefaultMaxBody   = 1 << 20
	DefaultMaxAnswer = 1 << 20
	// DefaultMaxUnsettled is far more than a person settles.
	DefaultMaxUnsettled = 1000
)

// longestWait bounds wait-max: a wait holds a connection.
const longestWait = 5 * time.Minute

// longest bounds what is kept: ten years. Beyond it, somebody wrote a wrong unit.
const longest = 10 * 365 * 24 * time.Hour

// Config is a checked [Settings]: every field has its value, and they fit
// together. Make one with NewConfig.
type Config struct {
	Upstream *url.URL
	Routes   []RouteConfig

	Principal      Principal
	TrustedProxies []netip.Prefix
	JWKS           string
	Audience       string
	AuthURL        *url.URL
	KeyHeaders     []string
	Namespace      string

	MaxBody, MaxAnswer int64 // bytes
	Expires            bool
	Docs               string // empty: this project's own page
	Limits             Limits
	// Problem writes refusals. nil: as problem documents.
	Problem func(http.ResponseWriter, *http.Request, umavezhttp.Problem)

	Listen string
	Admin  string // empty: none
	Store  StoreAddress

	Keyring keyring.Source // neither file nor command: none
	// AdminToken is the file of the token that opens /keys; empty: closed.
	AdminToken   string
	Status       bool
	KeepNames    bool
	MaxUnsettled int // negative: no bound

	Lease     time.Duration
	Retain    time.Duration
	Tombstone time.Duration // 0: none
	Wait      time.Duration // 0: none
	WaitMax   time.Duration
	MaxRun    time.Duration
	Drain     time.Duration

	CORS []string
	// CORSCredentials lets browsers send cookies from there.
	CORSCredentials bool
	RewriteHost     bool
	IgnoreCase      bool

	TLSCert, TLSKey, ClientCA string

	AcceptRisk []Risk
	LogFormat  string // text or json
	LogLevel   slog.Level
}

// NewConfig checks settings and fills in the defaults. Its error is a
// [*UsageError] that names the option and the value; all that is wrong is in
// one error, a line each, so that nobody repairs a file one start at a time.
func NewConfig(s Settings) (Config, error) {
	var c Config
	var p problems
	s.addresses(&c, &p)
	s.identity(&c, &p)
	s.times(&c, &p)
	s.routes(&c, &p)
	s.transport(&c, &p)
	s.logging(&c, &p)
	s.answers(&c, &p)
	s.kept(&c, &p)
	s.limits(&c, &p)
	s.risks(&c, &p)
	return c, p.err()
}

func (s Settings) addresses(c *Config, p *problems) {
	c.Upstream = p.url("--upstream", s.Upstream, "http", "https", "h2c")
	if s.Upstream == nil {
		p.addf("--upstream URL is required")
	}
	c.Listen = p.address("--listen", or(s.Listen, DefaultListen))
	if c.Admin = or(s.Admin, DefaultAdmin); c.Admin != "" {
		p.address("--admin", c.Admin)
	}
	if c.Admin != "" && c.Admin == c.Listen && !anyPort(c.Admin) {
		p.addf("--admin %s: is the same as --listen; whoever may call the API could then read the metrics", c.Admin)
	}
	var err error
	if c.Store, err = ParseStore(or(s.Store, DefaultStore)); err != nil {
		p.add(err)
	}
}

func (s Settings) identity(c *Config, p *problems) {
	c.Namespace = p.namespace(s.Namespace)
	if s.Principal == nil {
		p.addf("--principal is required: %s; two callers' equal keys are two keys, and none is a decision that all callers are one", principalForms)
		return
	}
	if c.Principal = s.principal(p); c.Principal.Kind == "" {
		return
	}
	c.TrustedProxies = p.prefixes("--trusted-proxy", s.TrustedProxy)
	c.JWKS, c.Audience = or(s.JWKS, ""), or(s.Audience, "")
	c.AuthURL = p.url("--auth-url", s.AuthURL, "http", "https")
	c.TLSCert, c.TLSKey, c.ClientCA = or(s.TLSCert, ""), or(s.TLSKey, ""), or(s.ClientCA, "")
	s.belongs(c.Principal.Kind, p)
}

// principal reads the setting; what is wrong leaves no kind.
func (s Settings) principal(p *problems) Principal {
	who, err := parsePrincipal(*s.Principal)
	if err != nil {
		p.add(err)
		return Principal{}
	}
	if who.Kind == PrincipalAuth {
		who.Header = p.header("auth-header", or(s.AuthHeader, DefaultAuthHeader))
	}
	return who
}

// belongs checks that each way to know the caller has what it verifies with,
// and that nothing is set that another way would need: a setting that does
// nothing looks like protection.
func (s Settings) belongs(kind PrincipalKind, p *problems) {
	need := func(option string, set bool, of PrincipalKind, why string) {
		switch {
		case of == kind && !set:
			p.addf("--principal %s: needs %s, %s", *s.Principal, option, why)
		case of != kind && set:
			p.addf("%s: is only for --principal %s, and --principal is %s", option, of, *s.Principal)
		}
	}
	if kind == PrincipalHeader && len(s.TrustedProxy) == 0 {
		p.addf("--principal %s: needs --trusted-proxy, the networks that the header may come from: anybody else can write it too", *s.Principal)
	}
	need("--jwks", or(s.JWKS, "") != "", PrincipalJWT, "the keys that tokens are verified with: a token counts only after that")
	need("--auth-url", or(s.AuthURL, "") != "", PrincipalAuth, "the address that says who the caller is")
	need("--client-ca", or(s.ClientCA, "") != "", PrincipalMTLS, "the authorities whose certificates are accepted")
	need("--audience", s.Audience != nil || kind == PrincipalJWT, PrincipalJWT, "")
	need("auth-header", s.AuthHeader != nil || kind == PrincipalAuth, PrincipalAuth, "")
}

func (s Settings) times(c *Config, p *problems) {
	c.Lease = p.between("--lease", s.Lease, DefaultLease, time.Second, time.Hour)
	c.Retain = p.between("--retain", s.Retain, DefaultRetain, time.Second, longest)
	c.Tombstone = p.between("--tombstone", s.Tombstone, DefaultTombstone, 0, longest)
	c.WaitMax = p.between("wait-max", s.WaitMax, DefaultWaitMax, 0, longestWait)
	c.Wait = p.between("--wait", s.Wait, min(DefaultWait, c.WaitMax), 0, c.WaitMax)
	c.MaxRun = p.between("--max-run", s.MaxRun, DefaultMaxRun, time.Second, 24*time.Hour)
	c.Drain = p.between("--drain", s.Drain, DefaultDrain, 0, 24*time.Hour)
	if c.MaxRun < c.Lease {
		p.addf("--max-run %v: is shorter than --lease %v, so no lease could be extended", c.MaxRun, c.Lease)
	}
}

func (s Settings) transport(c *Config, p *problems) {
	c.IgnoreCase = or(s.IgnoreCase, false)
	c.CORS, c.CORSCredentials = p.origins(s.CORS), or(s.CORSCredentials, false)
	if c.CORSCredentials && slices.Contains(c.CORS, "*") {
		p.addf("cors-credentials: cannot go with --cors *: any page that a customer opens could act for them")
	}
	c.RewriteHost = or(s.RewriteHost, false)
	switch cert, key := or(s.TLSCert, ""), or(s.TLSKey, ""); {
	case cert != "" && key == "":
		p.addf("--tls-cert %s: needs --tls-key", cert)
	case cert == "" && key != "":
		p.addf("--tls-key %s: needs --tls-cert", key)
	case cert == "" && or(s.ClientCA, "") != "":
		p.addf("--client-ca %s: needs --tls-cert and --tls-key: certificates are shown over TLS only", *s.ClientCA)
	}
}

func (s Settings) logging(c *Config, p *problems) {
	c.LogFormat = or(s.LogFormat, DefaultLogFormat)
	if c.LogFormat != "text" && c.LogFormat != "json" {
		p.addf("--log-format %s: must be text or json", c.LogFormat)
	}
	level := or(s.LogLevel, DefaultLogLevel)
	if err := c.LogLevel.UnmarshalText([]byte(level)); err != nil {
		p.addf("--log-level %s: must be debug, info, warn or error", level)
	}
}

// answers are settings of what clients get, which only the file can spell;
// their names stand without dashes in errors.
func (s Settings) answers(c *Config, p *problems) {
	for _, name := range s.KeyHeaders {
		c.KeyHeaders = append(c.KeyHeaders, p.header("key-headers", name))
	}
	c.MaxBody = p.size("max-body", s.MaxBody, DefaultMaxBody)
	c.MaxAnswer = p.size("max-answer", s.MaxAnswer, DefaultMaxAnswer)
	c.Expires = or(s.Expires, false)
	if u := p.url("docs", s.Docs, "http", "https"); u != nil {
		c.Docs = u.String()
	}
	s.problemTemplate(c, p)
}

// or returns what was written, or else the default.
func or[T any](written *T, otherwise T) T {
	if written != nil {
		return *written
	}
	return otherwise
}
