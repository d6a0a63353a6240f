package gateway

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
)

// Charge is what a card was charged: a line of the ledger.
type Charge struct {
	ID string `json:"id"`
	// Key is the key that the charge came with; empty: none.
	Key      string `json:"chave,omitempty"`
	Centavos int64  `json:"centavos"`
	// Card is the last four digits: a ledger is read by more people than a card.
	Card string `json:"cartao"`
}

// Ledger is an append-only file of charges, one JSON object a line. One process
// writes it, and it is safe for concurrent use.
type Ledger struct {
	mu   sync.Mutex
	file *os.File
	all  []Charge
	// failed: what the file's end looks like is not known, so nothing is added.
	failed error
}

// OpenLedger opens the file, or makes it, and reads what it holds.
func OpenLedger(name string) (*Ledger, error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("gateway: ledger: %w", err)
	}
	l := &Ledger{file: file}
	if err := l.read(); err != nil {
		return nil, errors.Join(fmt.Errorf("gateway: ledger %s: %w", name, err), file.Close())
	}
	return l, nil
}

func (l *Ledger) read() error {
	lines := bufio.NewScanner(l.file)
	for n := 1; lines.Scan(); n++ {
		var c Charge
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		l.all = append(l.all, c)
	}
	return lines.Err()
}

// charge writes a charge down and returns once it is on disk. With once, a key
// that was charged before is not charged again: its charge comes back, and the
// look and the line are one, however many ask at the same time.
func (l *Ledger) charge(key string, o order, once bool) (Charge, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if once && key != "" {
		if i := slices.IndexFunc(l.all, func(c Charge) bool { return c.Key == key }); i >= 0 {
			return l.all[i], nil
		}
	}
	if l.failed != nil {
		return Charge{}, l.failed
	}
	made := Charge{
		ID: "cob_" + strings.ToLower(rand.Text()), Key: key,
		Centavos: o.Centavos, Card: o.Card[len(o.Card)-4:],
	}
	line, err := json.Marshal(made)
	if err != nil {
		return Charge{}, err
	}
	_, err = l.file.Write(append(line, '\n'))
	if err = errors.Join(err, l.file.Sync()); err != nil {
		l.failed = fmt.Errorf("gateway: ledger: %w", err)
		return Charge{}, l.failed
	}
	l.all = append(l.all, made)
	return made, nil
}

// Charges returns the charges of a key, or all of them when it is empty.
func (l *Ledger) Charges(key string) []Charge {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := []Charge{}
	for _, c := range l.all {
		if key == "" || c.Key == key {
			found = append(found, c)
		}
	}
	return found
}

// Close closes the file.
func (l *Ledger) Close() error { return l.file.Close() }
