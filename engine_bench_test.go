package umavez_test

import (
	"strconv"
	"testing"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
)

// BenchmarkFirst is claim and complete of a new key; BenchmarkReplay the claim
// of a done one: what the engine and the in-memory store cost by themselves.
func BenchmarkFirst(b *testing.B) {
	e, err := umavez.New(memstore.New(memstore.Options{MaxRecords: 100_000_000}), umavez.Options{})
	if err != nil {
		b.Fatal(err)
	}
	answer := make([]byte, 118)
	op := opaque("")
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		op.Key.Name = strconv.Itoa(i)
		i++
		a, _, err := e.Claim(b.Context(), op)
		if err != nil || a == nil {
			b.Fatal(a, err)
		}
		if err := a.Complete(answer); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReplay(b *testing.B) {
	e, err := umavez.New(memstore.New(memstore.Options{}), umavez.Options{})
	if err != nil {
		b.Fatal(err)
	}
	op := opaque("k")
	a, _, err := e.Claim(b.Context(), op)
	if err != nil {
		b.Fatal(err)
	}
	if err := a.Complete(make([]byte, 118)); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, rec, err := e.Claim(b.Context(), op); err != nil || rec.State != umavez.Done {
			b.Fatal(rec, err)
		}
	}
}
