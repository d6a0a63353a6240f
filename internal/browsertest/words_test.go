package browsertest

import "fmt"

// words is how the page says things in a language. They stand here a second time
// on purpose: what the page says is what is tested.
type words struct {
	lang, other                             string
	pay, twice, drop, kill, retry           string
	without                                 string
	retryThis, settle                       string
	starting, busy, ready                   string
	alive                                   string
	once, charged2, charged3                string // how often a card was charged
	noAnswer, approved, kept, doubt, nobody string // what came of an attempt
	unknown, done, settled                  string
}

// number is what stands on a side.
func (w *words) number(charges, payments int) string {
	if w.lang == "en" {
		return fmt.Sprintf("%d %s for %d %s", charges, word(charges, "charge", "charges"), payments, word(payments, "payment", "payments"))
	}
	return fmt.Sprintf("%d %s para %d %s", charges, word(charges, "cobrança", "cobranças"), payments, word(payments, "pagamento", "pagamentos"))
}

func word(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}

var english = &words{
	lang: "en", other: "Português",
	pay: "Pay", twice: "Click twice", drop: "Drop the answer", kill: "Kill the server", retry: "Retry the last one",
	without:   "gateway without keys",
	retryThis: "Retry", settle: "Ask the gateway and settle",
	starting: "Starting the gateway and both servers…", busy: "Under way…", ready: "Ready.",
	alive: "The server runs.",
	once:  "the card was charged once", charged2: "the card was charged 2 times", charged3: "the card was charged 3 times",
	noAnswer: "→ no answer: the connection broke", approved: "→ 201 aprovado", kept: "→ 201 aprovado (the kept answer)",
	doubt: "→ 502 the gateway did not answer: it may have been charged", nobody: "→ 502 nobody knows whether it was charged",
	unknown: "unknown", done: "done", settled: "It was settled from outside.",
}

var portuguese = &words{
	lang: "pt-BR", other: "English",
	pay: "Pagar", twice: "Clicar duas vezes", drop: "Perder a resposta", kill: "Matar o servidor", retry: "Repetir o último",
	without:   "gateway sem chaves",
	retryThis: "Repetir", settle: "Perguntar ao gateway e resolver",
	starting: "Iniciando o gateway e os dois servidores…", busy: "Em andamento…", ready: "Pronto.",
	alive: "O servidor está no ar.",
	once:  "o cartão foi cobrado uma vez", charged2: "o cartão foi cobrado 2 vezes", charged3: "o cartão foi cobrado 3 vezes",
	noAnswer: "→ sem resposta: a conexão caiu", approved: "→ 201 aprovado", kept: "→ 201 aprovado (a resposta guardada)",
	doubt: "→ 502 o gateway não respondeu: pode ter sido cobrado", nobody: "→ 502 ninguém sabe se foi cobrado",
	unknown: "desconhecida", done: "concluída", settled: "Foi resolvida por fora.",
}
