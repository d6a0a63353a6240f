package sqlitestore

import "syscall"

// sharedFileSystems are the kinds of file system, by the number that statfs
// gives, that other machines may write to, or whose locks and shared memory do
// not reach every process. FUSE is one of them because it may be anything:
// sshfs, rclone, and the shares of virtual machines and container desktops.
var sharedFileSystems = map[int64]string{
	0x6969:     "nfs",
	0x517B:     "smb",
	0xFF534D42: "cifs",
	0xFE534D42: "smb2",
	0x01021997: "9p",
	0x65735546: "fuse",
	0x5346414F: "afs",
	0x6B414653: "afs",
	0x73757245: "coda",
	0x00C36400: "ceph",
	0x0BD00BD0: "lustre",
	0x01161970: "gfs2",
	0x7461636F: "ocfs2",
	0x786F4256: "vboxsf",
	0x19830326: "fhgfs",
	0x47504653: "gpfs",
}

// sharedFileSystem returns the name of the directory's file system if it is one
// of those, else "".
func sharedFileSystem(dir string) (string, error) {
	var st syscall.Statfs_t
	for {
		err := syscall.Statfs(dir, &st)
		if err == syscall.EINTR {
			continue
		}
		// The field's width and sign differ between architectures.
		return sharedFileSystems[int64(uint32(st.Type))], err
	}
}
