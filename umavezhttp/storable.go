package umavezhttp

// Storable reports whether a header field of this name may stand in an answer
// that is stored (rule A7): it is about the answer itself, not about one
// connection, one moment, one session or one origin. It is for those who make a
// stored [Answer] themselves, such as an operator who settles a key.
func Storable(name string) bool { return kindOf(name) == ofAnswer }
