package sqlitestore

import (
	"crypto/sha256"

	"github.com/umavez/umavez"
)

// op is one call of the contract on its way through the writer. Its results may
// be read when the batcher has returned no StoreError.
type op struct {
	name string // the contract's name of the call
	id   umavez.ID
	ev   umavez.Event
	req  umavez.ClaimRequest // what ev.Claim points to
	// absent: there is no row, as far as anyone knows. The writer inserts one
	// without looking, and looks when that meets one.
	absent bool
	// task is done instead of ev, inside the transaction.
	task func(*tx) error

	rec      umavez.Record // of a claim
	acquired bool
	foreign  bool // it is lost, and was another process's
}

// newClaim is a claim of a key that is most likely new, unless the request says
// that it has seen a record.
func newClaim(id umavez.ID, req umavez.ClaimRequest) *op {
	o := &op{name: "claim", id: id, req: req, absent: req.TakeOver == 0 && !req.Resume}
	o.ev = umavez.Event{Kind: umavez.EventClaim, Attempt: req.Attempt, Claim: &o.req}
	return o
}

// Name implements groupcommit.Op.
func (o *op) Name() string { return o.name }

// Key implements groupcommit.Op.
func (o *op) Key() umavez.ID { return o.id }

// taskKey is the key of all tasks: some place in the order that no record has.
var taskKey = umavez.ID(sha256.Sum256([]byte("umavez sqlite task")))

// newTask makes an op of something else than a transition.
func newTask(name string, task func(*tx) error) *op {
	return &op{name: name, id: taskKey, task: task}
}

// rowSize is about what a record's row takes in the file without its blobs.
const rowSize = 256

// Size implements groupcommit.Op.
func (o *op) Size() int {
	return rowSize + len(o.ev.Payload) + len(o.ev.Why) + len(o.req.Label) + len(o.req.Request)
}
