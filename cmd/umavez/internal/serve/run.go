package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/cmd/umavez/internal/keys"
	"github.com/umavez/umavez/keyring"
	"github.com/umavez/umavez/proxy"
)

// Hooks are for tests that run the sidecar in a process of its own.
type Hooks struct {
	// Observe is called at every moment of every attempt, before it is counted.
	Observe func(umavez.Observation)
	// Wrap goes around everything that a client's request meets.
	Wrap func(http.Handler) http.Handler
}

// process is a running sidecar.
type process struct {
	cfg     Config
	log     *slog.Logger
	store   umavez.Store
	engine  *umavez.Engine
	ring    *keyring.Ring // nil: nothing is sealed
	token   keys.Token    // opens /keys, if the configuration names one
	metrics *metrics
	health  *health
	proxy   *proxy.Proxy

	clients, admin *http.Server
	// life ends after the drain: it is for what runs beside the requests.
	life context.Context
	// background counts the goroutines that end with their context.
	background sync.WaitGroup
}

// Run serves until ctx ends or the process gets SIGTERM or SIGINT, and then
// drains: see drain.go. It writes its log and the ready line to stderr. The
// error is nil when nothing was left unfinished.
func Run(ctx context.Context, cfg Config, stderr io.Writer, hooks Hooks) (err error) {
	p := &process{cfg: cfg, log: cfg.newLogger(stderr), metrics: newMetrics(), health: new(health)}
	p.metrics.begin(cfg.Routes)
	tlsConfig, err := cfg.tlsConfig()
	if err != nil {
		return err
	}
	if p.token, err = cfg.adminToken(); err != nil {
		return err
	}
	stop, now, release := stopSignals(ctx)
	defer release()

	var end context.CancelFunc
	p.life, end = context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	if p.ring, err = cfg.loadRing(stop, stderr); err != nil {
		return err
	}
	closeStore, err := p.openEngine(stop, hooks)
	if err != nil {
		return err
	}
	// In this order: what runs beside the requests uses the store.
	defer func() {
		end()
		p.closeServers()
		p.background.Wait()
		err = errors.Join(err, closeStore())
	}()
	p.watchUnsettled(stop)
	p.inBackground(func() {
		if err := p.engine.Run(p.life); err != nil && p.life.Err() == nil {
			p.log.Error("housekeeping ended", "error", err)
		}
	})
	handler, err := p.handler(stop)
	if err != nil {
		return err
	}
	defer p.proxy.Close()
	if hooks.Wrap != nil {
		handler = hooks.Wrap(handler)
	}
	failed, err := p.start(handler, tlsConfig, stderr)
	if err != nil {
		return err
	}
	select {
	case <-stop.Done():
		return p.drain(now)
	case err := <-failed:
		return errors.Join(err, p.drain(now))
	}
}

// openEngine opens the store and builds the engine over it.
func (p *process) openEngine(ctx context.Context, hooks Hooks) (closeStore func() error, err error) {
	opened, err := openStore(ctx, p.cfg.Store, p.cfg.AcceptRisk)
	if err != nil {
		return nil, err
	}
	p.store = opened.Store
	p.health.pingStore = p.ping
	p.engine, err = umavez.New(p.store, umavez.Options{
		Lease: p.cfg.Lease, MaxRun: p.cfg.MaxRun,
		Retain: p.cfg.Retain, Tombstone: orNone(p.cfg.Tombstone),
		MaxWaiters: p.cfg.Limits.MaxWaiters, MaxWaitersPerKey: p.cfg.Limits.MaxWaitersPerKey,
		MaxUnsaved: p.cfg.Limits.MaxUnsaved, MaxUnsettled: p.cfg.MaxUnsettled,
		Sealer: sealer(p.ring),
		Observe: func(o umavez.Observation) {
			if hooks.Observe != nil {
				hooks.Observe(o)
			}
			p.metrics.observe(o)
			p.logMoment(o)
		},
	})
	if err != nil {
		return nil, errors.Join(err, opened.close())
	}
	p.metrics.gauges(p.engine.Stats)
	p.log.Info("store", "address", p.cfg.Store.String(), "promise", opened.promise)
	return opened.close, nil
}

// orNone spells "none" as the engine does: its zero is the default, and a
// negative duration is none.
func orNone(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}

// ping asks for a record that cannot exist: any answer will do.
func (p *process) ping(ctx context.Context) error {
	_, err := p.store.Get(ctx, umavez.ID{})
	if err != nil {
		p.log.Warn("the store does not answer", "error", err)
	}
	return err
}

// start opens the addresses, serves them, and says so: the ready line is a
// contract with whoever starts this process. An error that ends a server later
// arrives on failed.
func (p *process) start(handler http.Handler, tlsConfig *tls.Config, stderr io.Writer) (failed <-chan error, err error) {
	clients, err := listen("--listen", p.cfg.Listen)
	if err != nil {
		return nil, err
	}
	errs := make(chan error, 2)
	if p.cfg.Admin != "" {
		admin, err := listen("--admin", p.cfg.Admin)
		if err != nil {
			return nil, errors.Join(err, clients.Close())
		}
		p.admin = newAdminServer(newAdmin(p.health, p.metrics, p.keysHandler()), p.log)
		p.serve(p.admin.Serve, admin, errs)
		p.log.Info("admin", "address", "http://"+admin.Addr().String())
	}
	p.clients = newServer(p.cfg.Limits.Proxy, handler, tlsConfig, p.log)
	p.announce()
	scheme, serve := "http", p.clients.Serve
	if tlsConfig != nil {
		scheme = "https"
		serve = func(l net.Listener) error { return p.clients.ServeTLS(l, "", "") }
	}
	p.serve(serve, clients, errs)
	_, err = fmt.Fprintf(stderr, "umavez: listening on %s://%s\n", scheme, clients.Addr())
	return errs, err
}

func (p *process) serve(serve func(net.Listener) error, l net.Listener, failed chan<- error) {
	p.inBackground(func() {
		if err := serve(l); !errors.Is(err, http.ErrServerClosed) {
			failed <- fmt.Errorf("umavez: %s: %w", l.Addr(), err)
		}
	})
}

// closeServers cuts what is still connected. After a drain there is nothing but
// the admin address.
func (p *process) closeServers() {
	for _, s := range []*http.Server{p.clients, p.admin} {
		if s != nil {
			_ = s.Close() // an error means that a socket was closed already
		}
	}
}

func (p *process) inBackground(f func()) { p.background.Go(f) }
