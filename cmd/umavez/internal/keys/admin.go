package keys

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"strings"
)

// maxRequest bounds the body of a request to the admin API: an answer of MaxBody
// in base64, and its header.
const maxRequest = MaxBody*4/3 + 64<<10

// NewHandler is the admin API over a desk, for those who know the token:
//
//	GET  /keys             a page of a list; parameters as in Filter.values
//	GET  /keys/{id}        all of a key
//	POST /keys/find        Names: what they are called in the store
//	POST /keys/settle      Change
//	POST /keys/forget      Change, whose action is forget
//	POST /keys/purge       drops what is over
//
// Everything is JSON; what went wrong is a Fault.
func NewHandler(desk Desk, token Token, log *slog.Logger) http.Handler {
	a := &api{desk: desk, log: log}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /keys", a.list)
	mux.HandleFunc("GET /keys/{id}", func(w http.ResponseWriter, r *http.Request) {
		shown, err := desk.Show(r.Context(), r.PathValue("id"))
		a.answer(w, r, shown, err)
	})
	mux.HandleFunc("POST /keys/find", post(a, desk.Find))
	mux.HandleFunc("POST /keys/settle", post(a, a.settle))
	mux.HandleFunc("POST /keys/forget", post(a, func(ctx context.Context, c Change) (Changed, error) {
		if c.Action == "" {
			c.Action = "forget"
		}
		if c.Action != "forget" {
			return Changed{}, faultf(CodeUsage, "action %q: is done by /keys/settle", c.Action)
		}
		return a.settle(ctx, c)
	}))
	mux.HandleFunc("POST /keys/purge", post(a, func(ctx context.Context, _ struct{}) (Purged, error) { return desk.Purge(ctx) }))
	return guard(token, log, mux)
}

type api struct {
	desk Desk
	log  *slog.Logger
}

func (a *api) list(w http.ResponseWriter, r *http.Request) {
	f, err := filterOf(r.URL.Query())
	if err != nil {
		a.answer(w, r, nil, err)
		return
	}
	page, err := a.desk.List(r.Context(), f)
	a.answer(w, r, page, err)
}

// settle puts down how the change came. Its name is what the client says: the
// token is everybody's who may do this.
func (a *api) settle(ctx context.Context, c Change) (Changed, error) {
	if c.Who == "" || len(c.Who) > MaxWho {
		return Changed{}, faultf(CodeUsage, "who: must say who, in 1 to %d bytes; it stays in the audit trail", MaxWho)
	}
	c.Who += viaAdmin
	return a.desk.Settle(ctx, c)
}

// post reads the JSON that f takes. A page of a foreign site can send a form, or
// text, without being asked; it cannot send JSON.
func post[In, Out any](a *api, f func(context.Context, In) (Out, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in In
		if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
			a.answer(w, r, nil, faultf(CodeUsage, "Content-Type: must be application/json"))
			return
		}
		d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest))
		d.DisallowUnknownFields()
		if err := d.Decode(&in); err != nil {
			a.answer(w, r, nil, faultf(CodeUsage, "the request: %s", strings.TrimPrefix(err.Error(), "json: ")))
			return
		}
		if _, err := d.Token(); !errors.Is(err, io.EOF) {
			a.answer(w, r, nil, faultf(CodeUsage, "the request: something follows the JSON object"))
			return
		}
		out, err := f(r.Context(), in)
		a.answer(w, r, out, err)
	}
}

// answer writes what was asked for, or the fault. The cause of a failure is the
// log's: a store's error may tell of its inside.
func (a *api) answer(w http.ResponseWriter, r *http.Request, what any, err error) {
	if err == nil {
		writeJSON(w, http.StatusOK, what)
		return
	}
	fault, ok := errors.AsType[*Fault](err)
	if !ok {
		fault = &Fault{Code: CodeFailed, Text: "it did not work", cause: err}
	}
	told := *fault
	if fault.cause != nil {
		a.log.Warn("admin: keys", "path", r.URL.Path, "error", err)
		told.Text += "; the log of serve says why"
	}
	writeFault(w, &told)
}

func writeFault(w http.ResponseWriter, f *Fault) {
	status, ok := statuses[f.Code]
	if !ok {
		status = http.StatusBadGateway
	}
	writeJSON(w, status, f)
}

func writeJSON(w http.ResponseWriter, status int, what any) {
	text, err := json.Marshal(what)
	if err != nil {
		http.Error(w, "umavez: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n'))
}
