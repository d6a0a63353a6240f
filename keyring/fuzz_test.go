package keyring_test

import (
	"bytes"
	"strconv"
	"testing"
)

// FuzzOpen: what opens was sealed by the ring, byte by byte, with this data.
func FuzzOpen(f *testing.F) {
	r := ringOf(f, "new", "old")
	for _, ring := range []string{"new", "old", "other"} {
		f.Add(seal(f, ringOf(f, ring), "aprovado", "one"), []byte("one"))
	}
	f.Add(seal(f, r, "", ""), []byte{})
	f.Add([]byte("\xfbuz\x01\x20"), []byte("one"))
	f.Add([]byte("\xfbuz\x01\x00"+string(make([]byte, 28))), []byte("one"))
	f.Add([]byte("\xfbuz\x01\xff"+string(make([]byte, 300))), []byte("one"))
	f.Add([]byte(`{"valor":1}`), []byte("one"))
	f.Fuzz(func(t *testing.T, sealed, data []byte) {
		text, err := r.Open(sealed, data)
		if err != nil {
			if text != nil {
				t.Fatalf("an error, and a text: %q", text)
			}
			return
		}
		for _, id := range []string{"new", "old"} {
			again, err := ringOf(t, id).Seal(text, data)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Equal(again, sealed) {
				return
			}
		}
		t.Fatalf("%x opens with data %q, and neither key seals it so", sealed, data)
	})
}

// FuzzSeal: what was sealed opens, with the same data and with no other.
func FuzzSeal(f *testing.F) {
	r := ringOf(f, "a")
	f.Add([]byte(""), []byte(""))
	f.Add([]byte("aprovado"), []byte("record"))
	f.Add(make([]byte, 1<<12), make([]byte, 300))
	f.Fuzz(func(t *testing.T, text, data []byte) {
		sealed, err := r.Seal(text, data)
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.Open(sealed, data)
		if err != nil || got == nil || !bytes.Equal(got, text) {
			t.Fatalf("sealed %q, opened %q, %v", text, got, err)
		}
		if _, err := r.Open(sealed, append(bytes.Clone(data), 0)); err == nil {
			t.Fatal("opens with other data")
		}
		if len(text) >= 8 && bytes.Contains(sealed, text) {
			t.Fatal("the text stands in its sealed form")
		}
	})
}

var sizes = []int{118, 4 << 10, 64 << 10}

func BenchmarkSeal(b *testing.B) {
	r, data := ringOf(b, "2026-03"), make([]byte, 60)
	for _, n := range sizes {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			text := make([]byte, n)
			b.SetBytes(int64(n))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Seal(text, data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkOpen(b *testing.B) {
	r, data := ringOf(b, "2026-03"), make([]byte, 60)
	for _, n := range sizes {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			sealed := seal(b, r, string(make([]byte, n)), string(data))
			b.SetBytes(int64(n))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Open(sealed, data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
