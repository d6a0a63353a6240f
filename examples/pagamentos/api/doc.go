// Package api is the payment API of an article, twice from one code:
//
//	POST /pagamentos
//	Idempotency-Key: "pedido-42"
//	{"valor": 49.90, "cartao": "4111111111111111"}
//
//	201 {"id": "cob_…", "status": "aprovado"}
//	402 {"id": "",      "status": "recusado"}
//
// [Unprotected] does what a first version does: it calls the card gateway for
// every request. [Protected] stands behind umavezhttp, and its one call to the
// gateway is a step. What is refused is said in Portuguese, as problem documents.
//
// Start reading at handler.go, which both share; protected.go is the difference.
// payment.go reads what is to be paid, gateway.go calls the gateway, and
// reconcile.go asks it what became of a lost payment.
//
// The package knows no store: it is handed an engine.
package api
