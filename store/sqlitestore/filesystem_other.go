//go:build !linux && !darwin

package sqlitestore

// sharedFileSystem cannot tell on this system: whoever runs the store must see
// to it that the file is on a local disk.
func sharedFileSystem(string) (string, error) { return "", nil }
