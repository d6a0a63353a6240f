// Package gateway is a card gateway to play with: it charges into a file that
// outlives everything, honours keys or does not, and fails in the ways in which
// real ones do, on request.
//
//	POST /cobrancas            {"centavos": 4990, "cartao": "4111111111111111"}: charges
//	GET  /cobrancas?chave=K    what it knows of a key; without chave, the whole ledger
//	POST /falhas               {"falha": "cai-depois"}: what becomes of the next charge
//	GET  /falhas               how many charges are held, and what is to come
//	POST /soltar               lets go of what is held
//
// The key of a charge is its header Idempotency-Key. A gateway that does not
// honour keys notes it all the same, as real ones note a reference.
//
// Start reading at handler.go; ledger.go is the file, and fault.go the failures.
// The package uses the standard library only.
package gateway
