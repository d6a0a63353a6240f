//go:build linux

package startlog

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/umavez/umavez"
)

// Owner names a process's log. A claim keeps it in its record.
type Owner [16]byte

const (
	infix    = "-start-"           // between the database's name and the owner's
	magic    = "umavez starts 2\n" // then the boot id, the place, and zeros up to slots
	slotsAt  = 64
	placeLen = 12
	slotSize = len(umavez.AttemptID{}) // a divisor of the page size: no slot lies in two pages
)

// Log is the log of this process.
type Log struct {
	owner Owner
	path  string

	mu    sync.Mutex
	file  *os.File // nil: closed
	slots map[umavez.AttemptID]int64
	free  []int64 // offsets of slots that are no longer needed
	end   int64   // offset of the first slot that was never used
}

// Open makes a log beside the database file, and locks it.
func Open(database string) (*Log, error) {
	boot, err := bootID()
	if err != nil {
		return nil, fmt.Errorf("umavez: start log: %w", err)
	}
	for {
		l := &Log{slots: make(map[umavez.AttemptID]int64), end: slotsAt}
		rand.Read(l.owner[:])
		l.path = database + infix + hex.EncodeToString(l.owner[:])
		l.file, err = os.OpenFile(l.path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return nil, fmt.Errorf("umavez: start log: %w", err)
		}
		// Somebody who sweeps may have seen the file before it was locked, and
		// have taken it for a dead one's. Then another name is tried.
		if locked(l.file) && stillThere(l.file, l.path) {
			header, err := head(l.file, database, boot)
			if err == nil {
				_, err = l.file.WriteAt(header, 0)
			}
			if err != nil {
				return nil, errors.Join(fmt.Errorf("umavez: start log: %w", err), l.file.Close(), os.Remove(l.path))
			}
			return l, nil
		}
		_ = l.file.Close()
		_ = os.Remove(l.path)
	}
}

// head is what stands before the slots: this run of the kernel, and the place
// of the log.
//
// The place is the identity of the two files, the log and its database. Whoever
// copies a folder while it is in use may get a log of before a start and a
// database of after it, and such a log must not say that nothing had started. A
// copy lies in other files, and so knows nothing.
func head(log *os.File, database string, boot []byte) ([]byte, error) {
	var place []byte
	info, err := log.Stat()
	if err != nil {
		return nil, err
	}
	for _, info := range []os.FileInfo{info, statOf(database)} {
		var inode uint64
		if info != nil {
			if st, ok := info.Sys().(*syscall.Stat_t); ok {
				inode = st.Ino
			}
		}
		place = binary.BigEndian.AppendUint64(place, inode)
	}
	sum := sha256.Sum256(place)
	header := append([]byte(magic), boot...)
	header = append(header, sum[:placeLen]...)
	return append(header, make([]byte, slotsAt-len(header))...), nil
}

// statOf is nil for a file that is not there.
func statOf(path string) os.FileInfo {
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	return info
}

// Owner names the log.
func (l *Log) Owner() Owner { return l.owner }

// Started writes down that an attempt is about to start.
func (l *Log) Started(a umavez.AttemptID) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return fmt.Errorf("umavez: start log: %w", fs.ErrClosed)
	}
	if _, ok := l.slots[a]; ok {
		return nil
	}
	at := l.end
	if n := len(l.free); n > 0 {
		at, l.free = l.free[n-1], l.free[:n-1]
	} else {
		l.end += int64(slotSize)
	}
	if _, err := l.file.WriteAt(a[:], at); err != nil {
		// What was written of it may stay: it names no attempt that runs.
		return fmt.Errorf("umavez: start log: %w", err)
	}
	l.slots[a] = at
	return nil
}

// Ended forgets an attempt whose record no longer runs under it. The slot is
// written over by a later attempt; until then it names one that nobody asks for.
func (l *Log) Ended(a umavez.AttemptID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at, ok := l.slots[a]; ok {
		delete(l.slots, a)
		l.free = append(l.free, at)
	}
}

// Close ends the log: nothing can start any more. The file stays for whoever
// sweeps, with what had started and not ended.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	err := l.file.Close() // which unlocks it
	l.file = nil
	return err
}

// Dead is the log of an owner that is dead, locked against other sweepers.
type Dead struct {
	Owner   Owner
	started map[umavez.AttemptID]bool
	known   bool
	file    *os.File
	path    string
}

// Sweep calls visit with the log of each owner that is dead, and removes the
// log when visit returns nil. It skips the living, and logs that someone else
// sweeps just now.
func Sweep(database string, visit func(*Dead) error) error {
	// Not a glob: the database's name may hold any character.
	dir, name := filepath.Split(database)
	if dir == "" {
		dir = "."
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("umavez: start log: %w", err)
	}
	var failed error
	for _, entry := range entries {
		owner, ok := strings.CutPrefix(entry.Name(), name+infix)
		if !ok {
			continue
		}
		failed = errors.Join(failed, sweep(database, owner, visit))
	}
	return failed
}

func sweep(database, name string, visit func(*Dead) error) error {
	d := &Dead{path: database + infix + name}
	if raw, err := hex.DecodeString(name); err != nil || copy(d.Owner[:], raw) != len(d.Owner) {
		return nil // not one of ours
	}
	var err error
	d.file, err = os.OpenFile(d.path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // swept by someone else
	}
	if err != nil {
		return fmt.Errorf("umavez: start log: %w", err)
	}
	defer func() { _ = d.file.Close() }() // and with it the lock; it was only read
	if !locked(d.file) || !stillThere(d.file, d.path) {
		return nil
	}
	if err := d.read(database); err != nil {
		return err
	}
	if err := visit(d); err != nil {
		return err
	}
	// Its owner may have found it locked while opening it, and have removed it.
	if err := os.Remove(d.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("umavez: start log: %w", err)
	}
	return nil
}

// NeverStarted reports whether it is known that the attempt did not start, and
// so never will.
func (d *Dead) NeverStarted(a umavez.AttemptID) bool { return d.known && !d.started[a] }

// read takes in the log. One of another boot, a copy, or one without a whole
// header knows nothing: its last writes may be gone.
func (d *Dead) read(database string) error {
	boot, err := bootID()
	if err != nil {
		return fmt.Errorf("umavez: start log: %w", err)
	}
	content, err := os.ReadFile(d.path)
	if err != nil {
		return fmt.Errorf("umavez: start log: %w", err)
	}
	want, err := head(d.file, database, boot)
	if err != nil {
		return fmt.Errorf("umavez: start log: %w", err)
	}
	if !bytes.HasPrefix(content, want) {
		return nil
	}
	d.known, d.started = true, make(map[umavez.AttemptID]bool)
	for slots := content[slotsAt:]; len(slots) >= slotSize; slots = slots[slotSize:] {
		d.started[umavez.AttemptID(slots[:slotSize])] = true
	}
	return nil
}

func locked(f *os.File) bool {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}

// stillThere: a locked file counts only while its name leads to it.
func stillThere(f *os.File, path string) bool {
	mine, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(mine, named)
}

// bootID names this run of the kernel: 36 characters.
func bootID() ([]byte, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return nil, err
	}
	b = bytes.TrimSpace(b)
	if len(b) == 0 || len(b) > slotsAt-len(magic)-placeLen {
		return nil, fmt.Errorf("boot id of %d bytes", len(b))
	}
	return b, nil
}
