package serve

// Settings are what a person wrote: flags, UMAVEZ_… variables, or the file. A
// nil field was not written. [NewConfig] checks them and fills in the
// defaults; until then nothing here is known to make sense.
//
// The YAML names are the flags' names, and a variable is the flag's name in
// upper case behind UMAVEZ_, with _ for -.
type Settings struct {
	Upstream *string  `yaml:"upstream" placeholder:"URL" help:"Where requests go: http://, https:// or h2c://HOST:PORT."`
	Route    []string `yaml:"route" sep:";" placeholder:"'POST /path'" help:"A route to protect, as a Go ServeMux pattern, with {name} for a segment that varies; repeatable. Routes not named pass straight through."`

	Principal    *string  `yaml:"principal" placeholder:"KIND" help:"Who the caller is: none, mtls, auth, header:NAME or jwt:ISS+SUB (ISS: iss, or the one issuer that is accepted; SUB: the claim that names the caller). Required: two callers' equal keys are two keys."`
	TrustedProxy []string `yaml:"trusted-proxy" placeholder:"CIDR" help:"Networks of the proxies in front: X-Forwarded-* and header:NAME are believed from there alone."`
	JWKS         *string  `yaml:"jwks" name:"jwks" placeholder:"URL|FILE" help:"The keys that verify tokens."`
	Audience     *string  `yaml:"audience" placeholder:"A" help:"The audience that a token must name. Not set: not checked."`
	AuthURL      *string  `yaml:"auth-url" name:"auth-url" placeholder:"URL" help:"Asked about every keyed request; its answer names the caller."`
	Namespace    *string  `yaml:"namespace" placeholder:"NAME" help:"Separates services that share a store (default ${namespace})."`

	Listen *string `yaml:"listen" placeholder:"ADDR" help:"Where clients come (default ${listen})."`
	Admin  *string `yaml:"admin" placeholder:"ADDR" help:"Where /healthz, /readyz and /metrics are (default ${admin}); empty: nowhere."`
	Store  *string `yaml:"store" placeholder:"DSN" help:"memory: or sqlite:FILE (default ${store})."`

	AdminToken *string `yaml:"admin-token" placeholder:"FILE" help:"A file that nobody but its owner may read, with the token that opens /keys on the admin address, for umavez keys --admin. Not set: /keys is closed."`
	Status     *bool   `yaml:"status" help:"Tell callers on GET /.umavez/keys/KEY what became of a key of theirs."`
	KeepNames  *bool   `yaml:"keep-names" help:"Keep key and caller with each record, in words. Not set: their hashes only."`
	Keyring    *string `yaml:"keyring" placeholder:"FILE" help:"A file that nobody but its owner may read, with the keys that seal what the store keeps; umavez keys generate makes one."`

	Lease     *Duration `yaml:"lease" placeholder:"DURATION" help:"An attempt's right to finish, extended while it runs (default ${lease})."`
	Retain    *Duration `yaml:"retain" placeholder:"DURATION" help:"How long answers are given (default ${retain})."`
	Tombstone *Duration `yaml:"tombstone" placeholder:"DURATION" help:"How long after that a late retry is refused (default ${tombstone}); 0: not at all."`
	Wait      *Duration `yaml:"wait" placeholder:"DURATION" help:"How long a duplicate waits for a running attempt (default ${wait}); 0: not at all."`
	MaxRun    *Duration `yaml:"max-run" placeholder:"DURATION" help:"The longest that an attempt may run (default ${maxrun})."`
	Drain     *Duration `yaml:"drain" placeholder:"DURATION" help:"How long running operations may go on after SIGTERM (default ${drain})."`

	Release    []string `yaml:"release" placeholder:"STATUS" help:"Further statuses of upstream, 400 to 599, that mean that nothing was done, beside those that say so by definition (401, 403, 429 ...); or none: not even those."`
	CORS       []string `yaml:"cors" name:"cors" placeholder:"ORIGIN" help:"Origins that browsers may call protected routes from."`
	IgnoreCase *bool    `yaml:"ignore-case" help:"Match routes without regard to case."`

	TLSCert  *string `yaml:"tls-cert" name:"tls-cert" placeholder:"FILE" help:"Certificate (chain) to serve TLS with."`
	TLSKey   *string `yaml:"tls-key" name:"tls-key" placeholder:"FILE" help:"Its private key."`
	ClientCA *string `yaml:"client-ca" name:"client-ca" placeholder:"FILE" help:"Authorities whose client certificates are accepted, for --principal mtls."`

	AcceptRisk []string `yaml:"accept-risk" placeholder:"NAME" help:"Start in spite of a named risk: ${risks}."`

	LogFormat *string `yaml:"log-format" placeholder:"FORMAT" help:"text or json (default ${logformat})."`
	LogLevel  *string `yaml:"log-level" placeholder:"LEVEL" help:"debug, info, warn or error (default ${loglevel})."`

	// The rest is for the file alone: nobody would type it.

	// Routes are protected routes with settings of their own.
	Routes []RouteSettings `yaml:"routes" kong:"-"`
	// AuthHeader is the header in which the answer of auth-url names the caller.
	AuthHeader *string `yaml:"auth-header" kong:"-"`
	// KeyHeaders are further names under which clients send the key (rule K8).
	KeyHeaders []string `yaml:"key-headers" kong:"-"`
	// WaitMax is the longest wait that a client may ask for (rule R2).
	WaitMax *Duration `yaml:"wait-max" kong:"-"`
	// MaxBody and MaxAnswer bound the bodies of requests with a key and of kept
	// answers, in bytes (rules F9, R9).
	MaxBody   *int64 `yaml:"max-body" kong:"-"`
	MaxAnswer *int64 `yaml:"max-answer" kong:"-"`
	// CORSCredentials lets browsers send cookies from the origins of cors.
	CORSCredentials *bool `yaml:"cors-credentials" kong:"-"`
	// RewriteHost sends upstream its own name in Host.
	RewriteHost *bool `yaml:"rewrite-host" kong:"-"`
	// Expires adds Idempotency-Expires to answers (rule A10).
	Expires *bool `yaml:"expires" kong:"-"`
	// Problem replaces the problem document.
	Problem *ProblemSettings `yaml:"problem" kong:"-"`
	// KeyringCommand is a program, with its arguments, that prints a key ring.
	KeyringCommand []string `yaml:"keyring-command" kong:"-"`
	// KeyringAllowPlain takes what lies in the store in plain, for as long as a
	// store that was not sealed becomes one that is.
	KeyringAllowPlain *bool `yaml:"keyring-allow-plain" kong:"-"`
	// MaxUnsettled bounds the records of one caller that are running or lost; 0:
	// no bound.
	MaxUnsettled *int64 `yaml:"max-unsettled" kong:"-"`
	// Limits bound waiting and sizes.
	Limits *LimitSettings `yaml:"limits" kong:"-"`
	// Docs is where problem documents say that a developer reads on.
	Docs *string `yaml:"docs" kong:"-"`
}

// ConfigFlag names the settings file. It is the one setting that the file
// itself cannot hold.
type ConfigFlag struct {
	Config string `placeholder:"FILE" help:"A YAML file with the same settings, and with those of single routes, such as required: docs/serve.md has them all. Flags win over variables, variables over the file."`
}
