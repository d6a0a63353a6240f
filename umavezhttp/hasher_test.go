package umavezhttp

import "testing"

// TestSipHash holds the hints' hash against the vectors of its authors: the key
// 00 01 … 0f, and messages 00 01 02 ….
func TestSipHash(t *testing.T) {
	key := [2]uint64{0x0706050403020100, 0x0f0e0d0c0b0a0908}
	message := []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}
	for n, want := range map[int]uint64{
		0: 0x726fdb47dd0e0e31, 1: 0x74f839c593dc67fd, 2: 0x0d6c8009d9a94f5a, 15: 0xa129ca6149be45e5,
	} {
		if got := sipHash(key, message[:n]); got != want {
			t.Errorf("of %d bytes: %#x, want %#x", n, got, want)
		}
	}
}
