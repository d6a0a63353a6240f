package cli

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// TestClientsThatHangUp: a thousand clients send a payment over a socket and
// hang up, half of them within five milliseconds, which is mostly before the
// claim is won, half of them at any moment of its operation or its answer. No
// key is unknown afterwards: each retry gets an answer, and each payment was
// charged once.
func TestClientsThatHangUp(t *testing.T) {
	const clients, atOnce = 1000, 32
	b := newBank(t, false)
	p := start(t, protect(b, sqliteFile(t))...)
	address := p.URL[len("http://"):]

	each := func(does func(n int)) {
		var wg sync.WaitGroup
		for first := range atOnce {
			wg.Go(func() {
				for n := first; n < clients; n += atOnce {
					does(n)
				}
			})
		}
		wg.Wait()
	}
	each(func(n int) {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		body := fmt.Sprint(n)
		_, err = fmt.Fprintf(conn, "POST /pagamentos HTTP/1.1\r\nHost: loja\r\nIdempotency-Key: hangup-%d\r\n"+
			"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", n, len(body), body)
		if err == nil {
			patience := []time.Duration{5 * time.Millisecond, 100 * time.Millisecond}[n/atOnce%2]
			err = conn.SetReadDeadline(time.Now().Add(rand.N(patience)))
		}
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = conn.Read(make([]byte, 100)) // whatever comes first: the answer, or the end of patience
	})
	before := len(b.charges)
	each(func(n int) {
		retry := func() answer {
			return mustPost(t, p.URL+"/pagamentos", fmt.Sprintf("hangup-%d", n), fmt.Sprint(n))
		}
		a := retry()
		// On a busy machine the store may not answer in time, or the first attempt
		// be running still: then the client is told to ask again.
		for a.header.Get("Retry-After") != "" {
			a = retry()
		}
		if want := fmt.Sprintf(`{"charged":%d}`, n); a.status != http.StatusCreated || a.body != want {
			t.Errorf("retry %d: %+v, want 201 %s", n, a, want)
		}
	})
	charged := map[string]int{}
	for range len(b.charges) {
		charged[<-b.charges]++
	}
	for n := range clients {
		if c := charged[fmt.Sprint(n)]; c != 1 {
			t.Errorf("payment %d was charged %d times", n, c)
		}
	}
	got := metricsOf(t, p.Admin)
	route := `{policy="opaque",route="POST /pagamentos"}`
	if n := got["umavez_unknown_total"+route]; n != "0" {
		t.Errorf("%s retries met an unknown outcome", n)
	}
	t.Logf("%d of %d were charged before their retry; %s claims were won for a caller who had left",
		before, clients, got["umavez_unstarted_total"+route])
}
