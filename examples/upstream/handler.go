package main

import (
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"strings"
)

// newHandler returns the API: POST /pagamentos charges a card, GET /pagamentos
// lists the charges, a JSON object a line. Between a charge and its answer it
// calls pause.
func newHandler(book *ledger, pause func()) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /pagamentos", func(w http.ResponseWriter, r *http.Request) {
		pay(w, r, book, pause)
	})
	mux.HandleFunc("GET /pagamentos", func(w http.ResponseWriter, _ *http.Request) {
		charges, err := book.read()
		if err != nil {
			http.Error(w, "the ledger cannot be read", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/jsonl")
		_, _ = io.Copy(w, charges) // a client that left needs no answer
	})
	return mux
}

// pay charges first and answers after a pause, as a slow gateway does: a
// client that gives up in between has been charged and does not know it.
func pay(w http.ResponseWriter, r *http.Request, book *ledger, pause func()) {
	var order struct {
		Amount json.Number `json:"valor"`
		Card   string      `json:"cartao"`
	}
	body := http.MaxBytesReader(w, r.Body, 64<<10)
	if err := json.NewDecoder(body).Decode(&order); err != nil {
		answer(w, http.StatusBadRequest, map[string]string{"erro": "the body is no JSON of {valor, cartao}"})
		return
	}
	amount, err := order.Amount.Float64()
	if err != nil || amount <= 0 || len(order.Card) < 4 {
		answer(w, http.StatusBadRequest, map[string]string{"erro": "valor must be above zero, cartao a card number"})
		return
	}

	made := charge{
		ID:     "pag_" + strings.ToLower(rand.Text()),
		Key:    r.Header.Get("Idempotency-Key"),
		Amount: order.Amount,
		Card:   order.Card[len(order.Card)-4:],
	}
	if err := book.add(made); err != nil {
		// The line may be on disk all the same: 500 says just that.
		answer(w, http.StatusInternalServerError, map[string]string{"erro": "the ledger cannot be written"})
		return
	}
	pause()
	w.Header().Set("Location", "/pagamentos/"+made.ID)
	answer(w, http.StatusCreated, map[string]string{"id": made.ID, "status": "aprovado"})
}

func answer(w http.ResponseWriter, status int, body map[string]string) {
	text, err := json.Marshal(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n'))
}
