package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
)

// charge is one effect: a line of the ledger.
type charge struct {
	ID string `json:"id"`
	// Key is the Idempotency-Key that the request came with, for whoever audits
	// the ledger. This API does nothing with it.
	Key    string      `json:"chave,omitempty"`
	Amount json.Number `json:"valor"`
	// Card is the last four digits: a ledger is read by more people than a card.
	Card string `json:"cartao"`
}

// ledger is an append-only file of charges, one JSON object a line.
type ledger struct {
	mu   sync.Mutex
	file *os.File
}

func openLedger(name string) (*ledger, error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	return &ledger{file: file}, nil
}

// add writes the charge down and waits until it is on disk.
func (l *ledger) add(c charge) error {
	line, err := json.Marshal(c)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := l.file.Write(append(line, '\n')); err != nil {
		return err
	}
	return l.file.Sync()
}

// read returns a reader of every charge so far.
func (l *ledger) read() (io.Reader, error) {
	info, err := l.file.Stat()
	if err != nil {
		return nil, err
	}
	return io.NewSectionReader(l.file, 0, info.Size()), nil
}

func (l *ledger) Close() error { return l.file.Close() }
