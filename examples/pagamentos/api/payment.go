package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// Payment is what is to be charged.
type Payment struct {
	// Centavos is the amount: money is never a float.
	Centavos int64  `json:"centavos"`
	Card     string `json:"cartao"`
}

// Bounds of a payment, each with its reason.
const (
	// maxBody is in bytes: the two fields, and room for spaces.
	maxBody = 4 << 10
	// maxCentavos is a million reais: whoever pays more calls.
	maxCentavos = 100_000_000
	// minCard and maxCard are digits: what cards have (ISO/IEC 7812).
	minCard, maxCard = 13, 19
)

// fieldError is what is wrong with a field, for whoever sent it.
type fieldError struct {
	Field   string `json:"campo"`
	Message string `json:"mensagem"`
}

// readPayment reads a request. notRead says that it is none; wrong says which
// fields make no sense.
func readPayment(w http.ResponseWriter, r *http.Request) (p Payment, wrong []fieldError, notRead error) {
	var sent struct {
		Amount json.Number `json:"valor"`
		Card   *string     `json:"cartao"`
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	if err := d.Decode(&sent); err != nil {
		return p, nil, notReadable(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return p, nil, errors.New("depois do objeto JSON vem mais alguma coisa")
	}
	var message string
	if p.Centavos, message = centavosOf(string(sent.Amount)); message != "" {
		wrong = append(wrong, fieldError{"valor", message})
	}
	if sent.Card == nil || !isCard(*sent.Card) {
		wrong = append(wrong, fieldError{"cartao", fmt.Sprintf("deve ter de %d a %d dígitos, sem espaços", minCard, maxCard)})
	} else {
		p.Card = *sent.Card
	}
	return p, wrong, nil
}

// notReadable says why a body is no payment, and nothing of what it holds: there
// may be a card's number in it.
func notReadable(err error) error {
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return fmt.Errorf("o corpo tem mais de %d bytes", tooLarge.Limit)
	}
	if field, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && field.Field != "" {
		return fmt.Errorf("o campo %s não é do tipo certo", field.Field)
	}
	return errors.New(`o corpo não é JSON como {"valor": 49.90, "cartao": "4111111111111111"}`)
}

// centavosOf reads an amount as it stands in JSON, without a float in between.
func centavosOf(number string) (centavos int64, wrong string) {
	if number == "" {
		return 0, "é obrigatório"
	}
	whole, fraction, _ := strings.Cut(number, ".")
	if len(fraction) > 2 && strings.Trim(fraction[2:], "0") == "" {
		fraction = fraction[:2]
	}
	if strings.ContainsAny(number, "eE") || len(fraction) > 2 {
		return 0, "deve ser escrito em reais, com no máximo duas casas decimais, como 49.90"
	}
	fraction += "00"[len(fraction):]
	centavos, err := strconv.ParseInt(whole+fraction, 10, 64)
	switch {
	case strings.HasPrefix(number, "-"), err == nil && centavos == 0:
		return 0, "deve ser positivo"
	case err != nil, centavos > maxCentavos:
		return 0, fmt.Sprintf("deve ser no máximo %d.00", maxCentavos/100)
	}
	return centavos, ""
}

func isCard(number string) bool {
	return len(number) >= minCard && len(number) <= maxCard && strings.Trim(number, "0123456789") == ""
}
