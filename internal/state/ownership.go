package state

import "io/fs"

// UnmappedID represents all IDs that are not mapped in a user namespace
// (user_namespaces(7)), such as root of the host.
const UnmappedID = 65534

// OthersWrite reports whether a mode lets other users than the owner and root write. Many
// distributions give each user its own group, with the same number.
func OthersWrite(mode fs.FileMode, owner, group int) bool {
	return mode&0o002 != 0 || mode&0o020 != 0 && group != owner
}
