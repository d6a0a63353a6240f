package api

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/umavezhttp"
)

// Names under which the store has the payments, and how a caller is found: all
// who use this API are one caller.
const (
	Namespace = "pagamentos"
	Route     = "pagamentos"
	Recipe    = "none"
	// Step is the call of the gateway: its derived key is what the gateway gets.
	Step = "cobrar"
)

// Options set the protected API up.
type Options struct {
	Gateway *Gateway
	// WithoutKeys says that the gateway honours no keys. Then a payment that is
	// lost between the gateway and its answer stays unknown, until the gateway
	// was asked, or somebody settles it.
	WithoutKeys bool
	// CompleteAfter is how long after a loss the completer begins. Default 60 s.
	CompleteAfter time.Duration
	// AskAfter is how long after it the gateway is asked what it knows, without
	// keys. Default 10 s.
	AskAfter time.Duration
	// Wait is how long a second click waits for the first. Default 5 s.
	Wait time.Duration
	Log  *slog.Logger
}

// Protected is the API that charges once for a key. The engine needs a Sealer:
// the requests that it keeps for the completer have card numbers in them.
//
// GET /.umavez/keys/{key} tells where a key stands.
func Protected(engine *umavez.Engine, o Options) (http.Handler, error) {
	base, err := umavezhttp.New(engine, umavezhttp.Options{
		Namespace: Namespace, Principal: umavezhttp.Anonymous, Recipe: Recipe, Wait: o.Wait,
	})
	if err != nil {
		return nil, err
	}
	once, err := base.With(umavezhttp.Route{
		Name: Route, Required: true, KeepRequest: true, CompleteAfter: o.CompleteAfter,
	})
	if err != nil {
		return nil, err
	}
	pay := once.Stepped(&payments{log: o.Log, charge: o.charge})
	if o.WithoutKeys {
		pay, err = once.Reconcile(pay, umavez.Reconciler{After: o.AskAfter, Ask: o.ask})
		if err != nil {
			return nil, err
		}
	}
	mux := http.NewServeMux()
	mux.Handle("POST /pagamentos", pay)
	mux.Handle("GET /.umavez/keys/{key}", once.Status())
	return mux, nil
}

// charge is the step. The gateway is given the derived key also when it does not
// honour it: it can be asked for it later.
func (o *Options) charge(ctx context.Context, p Payment) (Charge, error) {
	var how []umavez.StepOption
	if o.WithoutKeys {
		how = append(how, umavez.NoForeignKey())
	}
	return umavez.Step(ctx, Step, func(ctx context.Context, key string) (Charge, error) {
		return o.Gateway.Charge(ctx, key, p)
	}, how...)
}
