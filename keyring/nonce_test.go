package keyring_test

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"testing"
)

// sealWithNonce seals as a ring does, under a nonce of the caller's choice. It
// makes the key step by step, without HKDF's own functions.
func sealWithNonce(t testing.TB, id string, secret, nonce []byte, text, data string) []byte {
	t.Helper()
	mac := func(key []byte, message string) []byte {
		m := hmac.New(sha256.New, key)
		m.Write([]byte(message))
		return m.Sum(nil)
	}
	head := "\xfbuz\x01" + string(rune(len(id))) + id
	key := mac(mac([]byte("umavez keyring 1"), string(secret)), "umavez seal 1\x00"+head+data+"\x01")
	block, err := aes.NewCipher(key)
	if err != nil {
		t.Fatal(err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	return gcm.Seal(append([]byte(head), nonce...), nonce, []byte(text), []byte(head+data))
}
