package sqlitestore

import (
	"context"
	"encoding/binary"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/umavez/umavez"
)

func BenchmarkX(b *testing.B) {
	for _, n := range []int{1, 64} {
		b.Run(map[int]string{1: "one", 64: "64"}[n], func(b *testing.B) {
			s := open(b, file(b), Options{})
			var next atomic.Uint64
			var wg sync.WaitGroup
			ans := make([]byte, 160)
			b.ReportAllocs()
			b.ResetTimer()
			for range n {
				wg.Go(func() {
					for {
						k := next.Add(1)
						if k > uint64(b.N) {
							return
						}
						var name [8]byte
						binary.BigEndian.PutUint64(name[:], k)
						l := claim(b, s, string(name[:]), request())
						if err := s.Complete(context.Background(), l, ans, umavez.Retention{Retain: time.Hour, Tombstone: time.Hour}); err != nil {
							b.Error(err)
						}
					}
				})
			}
			wg.Wait()
			st := s.Stats()
			b.ReportMetric(float64(st.Calls)/float64(st.Batches), "calls/batch")
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pairs/s")
		})
	}
}
