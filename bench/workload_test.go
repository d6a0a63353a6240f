package bench

import (
	"crypto/rand"
	"encoding/hex"
	"net/http"
)

// The work is the same on both sides: a request of 14 bytes, an answer of 118
// and status 201, and a key that is a UUID, since fiber's middleware takes no
// other keys by default.
const (
	request = `{"valor":12.5}`
	answer  = `{"id":"pag_01J9Z3T6Q8V5W2X4Y7Z0A1B2C3","status":"aprovado","valor":12.5,"cartao":"4242","criado":"2026-01-02T03:04:05"}`
	status  = http.StatusCreated
	path    = "/pagamentos"
	media   = "application/json"
)

// newKeys draws n keys: version 4 UUIDs, 36 characters each.
func newKeys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		var b [16]byte
		rand.Read(b[:])
		b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
		h := hex.EncodeToString(b[:])
		keys[i] = h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
	}
	return keys
}
