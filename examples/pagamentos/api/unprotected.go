package api

import (
	"context"
	"log/slog"
	"net/http"
)

// Unprotected is the API as a first version has it: every request charges. It
// takes an Idempotency-Key and does nothing with it.
func Unprotected(gateway *Gateway, log *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /pagamentos", &payments{log: log, charge: func(ctx context.Context, p Payment) (Charge, error) {
		return gateway.Charge(ctx, "", p)
	}})
	return mux
}
