package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// DefaultSlow is how late a slow gateway answers: longer than people wait before
// they click again.
const DefaultSlow = 2 * time.Second

// maxBody bounds a request, in bytes: far more than a charge needs.
const maxBody = 4 << 10

// Options set a gateway up. The zero value honours no keys and does not fail.
type Options struct {
	// HonourKeys runs a charge once for its key: the next one with it gets the
	// first one's answer. Without, each request is a charge.
	HonourKeys bool
	// Faults are what becomes of the first charges, one each.
	Faults []Fault
	// Slow is how late an answer under FaultSlow comes. Default DefaultSlow.
	Slow time.Duration
	// Life ends what is held or slow. Default: nothing does.
	Life context.Context
}

// Known is what a gateway knows of a key, or of all.
type Known struct {
	Charges []Charge `json:"cobrancas"`
	// UnderWay is how many requests have come and may still be charged. It was
	// counted before the charges were looked for: none, and no charge, means that
	// nothing of what had come by then was charged.
	UnderWay int `json:"em_curso"`
}

// order is what is to be charged.
type order struct {
	Centavos int64  `json:"centavos"`
	Card     string `json:"cartao"`
}

// Answer is what a charge is answered with.
type Answer struct {
	ID     string `json:"id,omitempty"`
	Status string `json:"status"`
}

// The statuses of an Answer.
const (
	Approved = "aprovada" // 201
	Declined = "recusada" // 402: nothing was charged
)

type gateway struct {
	book   *Ledger
	once   bool
	faults *faults
	life   context.Context
}

// New returns the gateway as a handler; doc.go lists its addresses.
func New(book *Ledger, o Options) http.Handler {
	g := &gateway{
		book: book, once: o.HonourKeys, life: o.Life,
		faults: newFaults(o.Faults, cmp.Or(o.Slow, DefaultSlow)),
	}
	if g.life == nil {
		g.life = context.Background()
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /cobrancas", g.charge)
	mux.HandleFunc("GET /cobrancas", g.known)
	mux.HandleFunc("POST /falhas", g.fail)
	mux.HandleFunc("GET /falhas", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, g.faults.state())
	})
	mux.HandleFunc("POST /soltar", func(w http.ResponseWriter, _ *http.Request) {
		g.faults.release()
		w.WriteHeader(http.StatusNoContent)
	})
	return mux
}

// charge does not look whether its client is still there: what has arrived is
// charged, as by the real ones.
func (g *gateway) charge(w http.ResponseWriter, r *http.Request) {
	var o order
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&o); err != nil || o.Centavos <= 0 || len(o.Card) < 4 {
		answer(w, http.StatusBadRequest, Answer{Status: "pedido inválido"})
		return
	}
	key := r.Header.Get("Idempotency-Key")
	fault := g.faults.enter(key)
	made, status := g.settle(key, o, fault)
	g.faults.leave(key)

	switch fault {
	case FaultDropBefore, FaultDropAfter, FaultHoldAndLose:
		panic(http.ErrAbortHandler) // which closes the connection
	case FaultHoldAfter:
		g.faults.hold(g.life) //nolint:contextcheck // the client may leave, and it stays held
	case FaultSlow:
		g.faults.wait(g.life) //nolint:contextcheck // as above
	case FaultNone, FaultErrorAfter, FaultDecline, FaultHoldBefore:
	}
	answer(w, status, made)
}

// settle does to the ledger what a charge under this fault does.
func (g *gateway) settle(key string, o order, fault Fault) (Answer, int) {
	switch fault {
	case FaultHoldBefore, FaultHoldAndLose:
		g.faults.hold(g.life)
	case FaultDecline:
		return Answer{Status: Declined}, http.StatusPaymentRequired
	case FaultNone, FaultSlow, FaultDropAfter, FaultDropBefore, FaultErrorAfter, FaultHoldAfter:
	}
	if fault == FaultDropBefore || fault == FaultHoldAndLose {
		return Answer{}, 0
	}
	made, err := g.book.charge(key, o, g.once)
	if err != nil || fault == FaultErrorAfter {
		// The line may be on disk all the same: 500 says just that.
		return Answer{Status: "erro"}, http.StatusInternalServerError
	}
	return Answer{ID: made.ID, Status: Approved}, http.StatusCreated
}

// known looks at what is under way first: what ends in between is in the ledger.
func (g *gateway) known(w http.ResponseWriter, r *http.Request) {
	key := r.URL.Query().Get("chave")
	k := Known{UnderWay: g.faults.underWay(key)}
	k.Charges = g.book.Charges(key)
	answer(w, http.StatusOK, k)
}

func (g *gateway) fail(w http.ResponseWriter, r *http.Request) {
	wanted := struct {
		Fault Fault `json:"falha"`
		Times int   `json:"vezes"`
	}{Times: 1}
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&wanted)
	if err == nil {
		err = g.faults.add(wanted.Fault, wanted.Times)
	}
	if err != nil {
		answer(w, http.StatusBadRequest, map[string]string{"erro": err.Error()})
		return
	}
	answer(w, http.StatusOK, g.faults.state())
}

func answer(w http.ResponseWriter, status int, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n'))
}
