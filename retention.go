package umavez

// Retention is how long the attempt's answer stands once it is completed.
func (a *Attempt) Retention() Retention { return a.retention }
