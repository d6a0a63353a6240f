package sqlitestore

import "syscall"

// sharedFileSystem returns the name of the directory's file system if other
// machines may write to it, else "".
func sharedFileSystem(dir string) (string, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return "", err
	}
	var name []byte
	for _, c := range st.Fstypename {
		if c == 0 {
			break
		}
		name = append(name, byte(c))
	}
	switch kind := string(name); kind {
	case "nfs", "smbfs", "afpfs", "webdav", "macfuse", "osxfuse", "virtiofs":
		return kind, nil
	}
	return "", nil
}
