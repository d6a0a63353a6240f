package serve

import (
	"context"
	"strings"

	"github.com/umavez/umavez"
	"github.com/umavez/umavez/store/memstore"
	"github.com/umavez/umavez/store/sqlitestore"
)

// StoreScheme is a kind of store.
type StoreScheme string

// The kinds that this program can open.
const (
	StoreMemory StoreScheme = "memory"
	StoreSQLite StoreScheme = "sqlite"
)

// storeForms is what an error offers.
const storeForms = "memory: or sqlite:FILE"

// StoreAddress is a store's address, as --store spells it.
type StoreAddress struct {
	Scheme StoreScheme
	File   string // sqlite
}

// String spells the address. It holds no secret.
func (a StoreAddress) String() string { return string(a.Scheme) + ":" + a.File }

// SingleProcess reports whether the store serves one machine only.
func (a StoreAddress) SingleProcess() bool {
	return a.Scheme == StoreMemory || a.Scheme == StoreSQLite
}

// ParseStore reads a store's address. An address of another kind may hold a
// password, so the error shows its scheme alone.
func ParseStore(text string) (StoreAddress, error) {
	scheme, rest, ok := strings.Cut(text, ":")
	a := StoreAddress{Scheme: StoreScheme(scheme), File: rest}
	switch {
	case !ok || scheme == "":
		return a, usagef("--store: must be %s", storeForms)
	case a.Scheme == StoreMemory && rest != "":
		return a, usagef("--store %s: memory: takes nothing after the colon", text)
	case a.Scheme == StoreSQLite && rest == "":
		return a, usagef("--store %s: must name the file, such as %s", text, DefaultStore)
	case a.Scheme != StoreMemory && a.Scheme != StoreSQLite:
		return a, usagef("--store %s:…: this program opens %s", scheme, storeForms)
	}
	return a, nil
}

// openedStore is a store that is open, and what it says of itself.
type openedStore struct {
	umavez.Store
	// promise is what it keeps, in the words of the table that the
	// documentation prints.
	promise string
	close   func() error
}

// openStore opens the store of an address. Its own start-up checks refuse what
// would break its promise, unless the risk is accepted.
func openStore(ctx context.Context, a StoreAddress, accepted []Risk) (openedStore, error) {
	if a.Scheme == StoreMemory {
		return openedStore{
			Store:   memstore.New(memstore.Options{}),
			promise: "one process; its end forgets every key",
			close:   func() error { return nil },
		}, nil
	}
	var o sqlitestore.Options
	for _, r := range accepted {
		if r != RiskSingleProcess {
			o.AcceptRisk = append(o.AcceptRisk, string(r))
		}
	}
	s, err := sqlitestore.Open(ctx, a.File, o)
	if err != nil {
		return openedStore{}, err
	}
	return openedStore{
		Store:   s,
		promise: "one machine; claims and answers survive a killed process and a power cut",
		close:   s.Close,
	}, nil
}
