package umavezhttp

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/umavez/umavez/internal/wire"
)

// What our refusals say to a person, in every language that there is. Each
// sentence is about the client's request and what to do now; none tells of a
// store, a key or a value.

// language indexes the tables below.
type language int

const (
	english language = iota
	portuguese
	languages
)

var languageTags = [languages]string{"en", "pt-BR"}

var problemDetails = map[string][languages]string{
	wire.CodeMissingKey: {
		"This operation requires an Idempotency-Key header: a value of your own, made once for each intent and sent unchanged with every attempt. Nothing was done.",
		"Esta operação exige o cabeçalho Idempotency-Key: um valor seu, criado uma vez para cada intenção e enviado sem mudança em toda tentativa. Nada foi feito.",
	},
	wire.CodeInvalidKey: {
		"The idempotency key cannot be read. Nothing was done.",
		"A chave de idempotência não pode ser lida. Nada foi feito.",
	},
	wire.CodeKeyReused: {
		"This Idempotency-Key was used for another request. For a new intent make a new key; to repeat the first request, send it unchanged. Nothing was done.",
		"Esta Idempotency-Key já foi usada em outra requisição. Para uma nova intenção crie uma nova chave; para repetir a primeira requisição, envie-a sem mudança. Nada foi feito.",
	},
	wire.CodeInProgress: {
		"The first request with this Idempotency-Key is still being worked on. Send the same request again later: it gets the first one's answer.",
		"A primeira requisição com esta Idempotency-Key ainda está em andamento. Envie a mesma requisição mais tarde: ela recebe a resposta da primeira.",
	},
	wire.CodeOutcomeUnknown: {
		"An attempt with this Idempotency-Key did not end properly, and it is not known whether the operation happened. It is not run again as long as nobody knows. Do not repeat it under a new key before you know.",
		"Uma tentativa com esta Idempotency-Key não terminou direito, e não se sabe se a operação aconteceu. Ela não é executada de novo enquanto ninguém souber. Não a repita com uma nova chave antes de saber.",
	},
	wire.CodeReplayUnavailable: {
		"The operation with this Idempotency-Key was carried out, or its answer begun, and that answer cannot be given again. It will not be run again.",
		"A operação com esta Idempotency-Key foi executada, ou sua resposta começou a ser enviada, e essa resposta não pode ser dada de novo. Ela não será executada de novo.",
	},
	wire.CodeKeyExpired: {
		"This Idempotency-Key was used, and its answer is no longer kept. The operation is not run again under it.",
		"Esta Idempotency-Key já foi usada, e sua resposta não está mais guardada. A operação não é executada de novo com ela.",
	},
	wire.CodeTooManyUnsettled: {
		"Too many of your requests have an open outcome. No new ones are taken until some of them are settled. Nothing was done.",
		"Há requisições suas demais com resultado em aberto. Nenhuma nova é aceita até que algumas sejam resolvidas. Nada foi feito.",
	},
	wire.CodeAnswerTooLarge: {
		"The answer of this operation is larger than what can be kept, so the operation was rolled back. Nothing was done.",
		"A resposta desta operação é maior do que se pode guardar, por isso a operação foi desfeita. Nada foi feito.",
	},
	wire.CodeStoreUnavailable: {
		"At the moment it cannot be guaranteed that the operation runs only once, so it was not run. Send the same request again later.",
		"No momento não é possível garantir que a operação execute uma só vez, por isso ela não foi executada. Envie a mesma requisição mais tarde.",
	},
	wire.CodeRequestTooLarge: {
		"The body of a request with an Idempotency-Key may have at most %d bytes here. Nothing was done.",
		"O corpo de uma requisição com Idempotency-Key pode ter aqui no máximo %d bytes. Nada foi feito.",
	},
	wire.CodeRequestIncomplete: {
		"The body of the request did not arrive whole. Nothing was done; send the same request again.",
		"O corpo da requisição não chegou inteiro. Nada foi feito; envie a mesma requisição de novo.",
	},
	wire.CodeUnauthenticated: {
		"It is not known who is calling, and a key counts only for its caller. Nothing was done.",
		"Não se sabe quem está chamando, e uma chave só vale para quem a enviou. Nada foi feito.",
	},
	wire.CodeCallerUnavailable: {
		"At the moment it cannot be found out who is calling. Nothing was done; send the same request again later.",
		"No momento não é possível descobrir quem está chamando. Nada foi feito; envie a mesma requisição mais tarde.",
	},
	wire.CodeUpstreamUnreachable: {
		"The application behind this address could not be reached. Nothing was done; send the same request again later.",
		"Não foi possível alcançar a aplicação por trás deste endereço. Nada foi feito; envie a mesma requisição mais tarde.",
	},
	wire.CodeAmbiguousPath: {
		"The path of the request, or its method, can be read in more than one way, and one of them is an operation that is protected. Send it in its plain form. Nothing was done.",
		"O caminho da requisição, ou o método, pode ser lido de mais de um modo, e um deles é uma operação protegida. Envie-o na forma simples. Nada foi feito.",
	},
}

// unknownYetDetail is what outcome-unknown says with a Retry-After: a reconciler
// looks into it, or the next attempt runs it again, since its author declared that
// safe. That it is not run again would be wrong of both.
var unknownYetDetail = [languages]string{
	"An attempt with this Idempotency-Key did not end properly, and it is not known yet whether the operation happened. Send the same request again later, with the same key: it gets the answer, or is run again if that is safe. Do not repeat it under a new key before you know.",
	"Uma tentativa com esta Idempotency-Key não terminou direito, e ainda não se sabe se a operação aconteceu. Envie a mesma requisição mais tarde, com a mesma chave: ela recebe a resposta, ou é executada de novo se isso for seguro. Não a repita com uma nova chave antes de saber.",
}

// replayRecipeDetail is what replay-unavailable says when the stored answer is
// there, but it cannot be told whether this is the same request (rule F3).
var replayRecipeDetail = [languages]string{
	"The service compares requests in another way than it did for the first one with this Idempotency-Key, so it cannot tell whether this is the same one. It is not run again.",
	"O serviço compara requisições de outro modo do que na primeira com esta Idempotency-Key, e não sabe dizer se esta é a mesma. Ela não é executada de novo.",
}

// wholeTooLargeDetail is what request-too-large says of a request that is to be
// kept whole, header and all.
var wholeTooLargeDetail = [languages]string{
	"This operation keeps its request until it is done, and header and body of a request with an Idempotency-Key may have at most %d bytes together here. Nothing was done.",
	"Esta operação guarda a requisição até terminar, e o cabeçalho e o corpo de uma requisição com Idempotency-Key podem ter aqui no máximo %d bytes juntos. Nada foi feito.",
}

// keyFaults complete "The header NAME is not a valid key: …".
var keyFaults = map[wire.KeyFault][languages]string{
	wire.KeyEmpty:    {"it is empty", "está vazio"},
	wire.KeyTooLong:  {"the key has more than %d bytes", "a chave tem mais de %d bytes"},
	wire.KeyBadByte:  {"the byte 0x%02X at position %d is not allowed there", "o byte 0x%02X na posição %d não é permitido ali"},
	wire.KeyUnclosed: {"the closing quotation mark is missing", "faltam as aspas finais"},
	wire.KeyTrailing: {"what follows the closing quotation mark is no parameter (position %d)", "o que segue as aspas finais não é um parâmetro (posição %d)"},
}

var (
	keyTwice    = [languages]string{"The header %s stands there more than once; a request has one key. Nothing was done.", "O cabeçalho %s aparece mais de uma vez; uma requisição tem uma só chave. Nada foi feito."}
	keyDisagree = [languages]string{"The headers %s and %s hold different keys; a request has one key. Nothing was done.", "Os cabeçalhos %s e %s trazem chaves diferentes; uma requisição tem uma só chave. Nada foi feito."}
	keyFaulty   = [languages]string{"The header %s is not a valid key: %s. Nothing was done.", "O cabeçalho %s não é uma chave válida: %s. Nada foi feito."}
)

// detail is the sentence for a problem.
func (p *Problem) detail(lang language) string {
	switch {
	case p.key != nil:
		return p.key.detail(lang)
	case p.Code == wire.CodeOutcomeUnknown && p.RetryAfter > 0:
		return unknownYetDetail[lang]
	case p.recipeUnknown:
		return replayRecipeDetail[lang]
	case p.whole:
		return fmt.Sprintf(wholeTooLargeDetail[lang], p.limit)
	case p.Code == wire.CodeRequestTooLarge:
		return fmt.Sprintf(problemDetails[p.Code][lang], p.limit)
	}
	return problemDetails[p.Code][lang]
}

// detail says what is wrong with the key, and where. Positions count from 1.
func (e *invalidKey) detail(lang language) string {
	switch {
	case e.other != "":
		return fmt.Sprintf(keyDisagree[lang], e.name, e.other)
	case e.fault == nil:
		return fmt.Sprintf(keyTwice[lang], e.name)
	}
	what := keyFaults[e.fault.Fault][lang]
	switch e.fault.Fault {
	case wire.KeyTooLong:
		what = fmt.Sprintf(what, wire.MaxKey)
	case wire.KeyBadByte:
		what = fmt.Sprintf(what, e.fault.Byte, e.fault.At+1)
	case wire.KeyTrailing:
		what = fmt.Sprintf(what, e.fault.At+1)
	}
	return fmt.Sprintf(keyFaulty[lang], e.name, what)
}

// negotiate chooses the language by Accept-Language (RFC 9110, 12.5.4): the one
// with the higher weight, then the one that is named first. What cannot be read
// is passed over, since a refusal must be written in some language.
func negotiate(fields []string) language {
	if len(fields) == 0 {
		return english
	}
	weight := [languages]float64{-1, -1} // -1: not named
	var other float64                    // the weight of "*"
	best := english
	for _, field := range fields {
		for item := range strings.SplitSeq(field, ",") {
			tag, q := languageRange(item)
			lang, ok := languageOf(tag)
			if tag == "*" {
				other = max(other, q)
			}
			if !ok || q <= weight[lang] {
				continue
			}
			weight[lang] = q
			if q > weight[best] {
				best = lang
			}
		}
	}
	if weight[best] > 0 {
		return best
	}
	// Neither is wanted by name. Anything is as good as English then, unless
	// English is refused and anything else is not.
	if weight[english] == 0 && weight[portuguese] < 0 && other > 0 {
		return portuguese
	}
	return english
}

// languageOf maps a language range to ours: any English, any Portuguese.
func languageOf(tag string) (language, bool) {
	primary, _, _ := strings.Cut(tag, "-")
	switch {
	case strings.EqualFold(primary, "en"):
		return english, true
	case strings.EqualFold(primary, "pt"):
		return portuguese, true
	}
	return english, false
}

// languageRange reads "pt-BR;q=0.8". A weight that cannot be read is 0.
func languageRange(item string) (tag string, q float64) {
	tag, params, weighted := strings.Cut(item, ";")
	tag = strings.TrimSpace(tag)
	if !weighted {
		return tag, 1
	}
	name, value, _ := strings.Cut(strings.TrimSpace(params), "=")
	if !strings.EqualFold(strings.TrimSpace(name), "q") {
		return tag, 0
	}
	q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	if err != nil || !(q >= 0 && q <= 1) {
		return tag, 0
	}
	return tag, q
}
