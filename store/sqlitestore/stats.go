package sqlitestore

// Stats counts what a store has done since it was opened.
type Stats struct {
	// Calls is how many calls went through the writer, in how many Batches.
	// A batch that wrote nothing costs no commit.
	Calls, Batches uint64
	// Largest is the most calls in one batch.
	Largest int
	// Commits is how many transactions were committed, each with one sync.
	Commits uint64
	// FailedCommits is how many ended in "don't know", and Reopened how often
	// the writer's connection was opened again after a failure.
	FailedCommits, Reopened uint64
	// Audited is how many entries were written into the audit trail.
	Audited uint64
	// Recounted is how often the running and lost records of a scope were
	// counted, for claims that bound them.
	Recounted uint64
	// LogEmptied is how often the write-ahead log had grown and was emptied.
	LogEmptied uint64
	// Queued is how many calls wait for the writer now.
	Queued int
}

// Stats returns the counts.
func (s *Store) Stats() Stats {
	b := s.batches.Stats()
	return Stats{
		Calls: b.Rows, Batches: b.Batches, Largest: b.Largest, Queued: b.Queued,
		Commits:       s.writer.commits.Load(),
		FailedCommits: s.writer.failedCommits.Load(),
		Reopened:      s.writer.reopened.Load(),
		Audited:       s.writer.audited.Load(),
		Recounted:     s.writer.tx.unsettled.recounted.Load(),
		LogEmptied:    s.writer.emptied.Load(),
	}
}
