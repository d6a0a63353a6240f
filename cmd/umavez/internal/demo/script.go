package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// scriptTimeout bounds the script: it takes seconds, and busy machines are slow.
const scriptTimeout = 2 * time.Minute

// scriptTimes have leases run out soon, since a script waits for that, and have
// what is unknown settled by hand: nobody else comes before the script is over.
var scriptTimes = times{Lease: 400 * time.Millisecond, CompleteAfter: time.Minute, AskAfter: time.Hour}

// ErrBroken: the ledgers are not as the promise says.
var ErrBroken = errors.New("umavez: demo: the promise was not kept")

// Script plays what a seed draws and prints what came of it. The last line is
//
//	unprotected: N payments, M charges; protected: N payments, N charges; settled by hand: K
//
// The error is ErrBroken when the protected side's ledger is not as promised.
func Script(ctx context.Context, p Program, seed uint64, out io.Writer) error {
	ctx, cancel := context.WithTimeoutCause(ctx, scriptTimeout, fmt.Errorf("umavez: demo: not over after %v", scriptTimeout))
	defer cancel()
	fmt.Fprintf(out, "umavez demo --script --seed %d\n", seed)
	script := rounds(seed)
	results, errs := make([][]played, len(script)), make([]error, len(script))
	var all sync.WaitGroup
	for i, r := range script {
		all.Go(func() { results[i], errs[i] = r.playAlone(ctx, p) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	var sum total
	for i, r := range script {
		for j := range results[i] {
			r.judge(&results[i][j])
		}
		r.print(out, results[i])
		sum.add(r, results[i])
	}
	fmt.Fprintf(out, "\n%v\n", sum)
	if sum.broken {
		return ErrBroken
	}
	return nil
}

// playAlone plays a round in a world of its own.
func (r round) playAlone(ctx context.Context, p Program) (all []played, err error) {
	w, err := newWorld(p, r.withoutKeys, scriptTimes)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	return r.play(ctx, w)
}
