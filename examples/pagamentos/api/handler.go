package api

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"

	"github.com/umavez/umavez/umavezhttp"
)

// Answer is what a payment is answered with: 201 when it was charged, 402 when
// the gateway has declined.
type Answer struct {
	ID     string `json:"id"`
	Status string `json:"status"`
}

// The statuses of an Answer.
const (
	Approved = "aprovado"
	Declined = "recusado"
)

// answerOf is the answer to a payment, and its status.
func answerOf(c Charge) (Answer, int) {
	if c.Approved {
		return Answer{ID: c.ID, Status: Approved}, http.StatusCreated
	}
	return Answer{ID: c.ID, Status: Declined}, http.StatusPaymentRequired
}

// payments is the operation itself: read, charge, answer. It does not know
// whether it is protected.
type payments struct {
	charge func(ctx context.Context, p Payment) (Charge, error)
	log    *slog.Logger
}

// ServeHTTP answers POST /pagamentos.
func (h *payments) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p, wrong, notRead := readPayment(w, r)
	switch {
	case notRead != nil:
		refuse(w, problem{Title: "Pedido malformado", Status: http.StatusBadRequest, Detail: notRead.Error()})
		return
	case len(wrong) > 0:
		refuse(w, problem{
			Title: "Pagamento inválido", Status: http.StatusUnprocessableEntity,
			Detail: "Nada foi cobrado: corrija os campos e envie com uma chave nova.", Fields: wrong,
		})
		return
	}
	charged, err := h.charge(r.Context(), p)
	if err != nil {
		h.log.Warn("a charge ended without an answer", "error", err)
		refuse(w, problem{
			Title: "O gateway não respondeu", Status: http.StatusBadGateway,
			Detail: "Não se sabe se o cartão foi cobrado. Repita o mesmo pedido com a mesma chave.",
		})
		return
	}
	body, status := answerOf(charged)
	write(w, status, "application/json", body)
}

// problem is a problem document (RFC 9457), in Portuguese.
type problem struct {
	Title  string       `json:"title"`
	Status int          `json:"status"`
	Detail string       `json:"detail"`
	Fields []fieldError `json:"erros,omitempty"`
}

func refuse(w http.ResponseWriter, p problem) { write(w, p.Status, "application/problem+json", p) }

func write(w http.ResponseWriter, status int, mediaType string, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Content-Language", "pt-BR")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n'))
}

// Stored is the answer of a payment that was charged, as a record holds it: for
// reconcilers and for people who settle. The handler would have given the same.
func Stored(c Charge) umavezhttp.Answer {
	body, status := answerOf(c)
	text, _ := json.Marshal(body) // two strings: it cannot fail
	return umavezhttp.Answer{
		Status: status,
		Header: http.Header{"Content-Type": {"application/json"}, "Content-Language": {"pt-BR"}},
		Body:   append(text, '\n'),
	}
}
