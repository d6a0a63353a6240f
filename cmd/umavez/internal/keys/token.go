package keys

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strings"
)

// Token is what a client of the admin API shows. Only its hash is held, so that
// it is not in what is printed or dumped.
type Token struct{ hash [sha256.Size]byte }

// A token's length in bytes: 16 random ones cannot be guessed, and what is longer
// than a line is another file.
const (
	minToken = 16
	maxToken = 4096
)

// ReadToken reads a file that holds the token, and a line feed at most. A file
// that others may read is refused: whoever has the token settles payments.
func ReadToken(file string) (Token, error) {
	text, err := ReadSecret(file)
	if err != nil {
		return Token{}, err
	}
	return tokenOf(text), nil
}

// ReadSecret reads what ReadToken reads, for the client, who sends it.
func ReadSecret(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("--admin-token %s: %w", file, reasonOf(err))
	}
	defer f.Close() //nolint:errcheck // it was read; closing changes nothing
	info, err := f.Stat()
	if err != nil {
		return "", fmt.Errorf("--admin-token %s: %w", file, reasonOf(err))
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("--admin-token %s: is no file", file)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("--admin-token %s: others than its owner may read it (%v); chmod 600", file, info.Mode().Perm())
	}
	b, err := io.ReadAll(io.LimitReader(f, maxToken+1))
	if err != nil {
		return "", fmt.Errorf("--admin-token %s: %w", file, reasonOf(err))
	}
	text := strings.TrimRight(string(b), "\r\n")
	switch {
	case len(text) < minToken || len(text) > maxToken:
		return "", fmt.Errorf("--admin-token %s: holds %d bytes, and needs %d to %d, random ones", file, len(text), minToken, maxToken)
	case strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", fmt.Errorf("--admin-token %s: must be one line of visible ASCII, such as openssl rand -hex 32 prints", file)
	}
	return text, nil
}

// reasonOf is an error of the file system without the name, which the option has.
func reasonOf(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}

func tokenOf(text string) Token { return Token{hash: sha256.Sum256([]byte(text))} }

// shownBy reports whether a request shows the token. What is compared is the
// hashes, so that the time it takes tells nothing of token or length.
func (t Token) shownBy(r *http.Request) bool {
	shown := sha256.Sum256([]byte(bearer(r)))
	return subtle.ConstantTimeCompare(shown[:], t.hash[:]) == 1
}

// bearer is the token that a request shows; empty: none, or more than one.
func bearer(r *http.Request) string {
	fields := r.Header.Values("Authorization")
	if len(fields) != 1 {
		return ""
	}
	scheme, text, _ := strings.Cut(fields[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return text
}
