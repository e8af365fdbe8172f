package host

import (
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/moby/sys/user"
)

// BaseID is the first host id of the range that real root maps sandboxes
// to. 1879048192 to 2147483647 is not given out by systemd, useradd or
// container engines (systemd, "Users, Groups, UIDs and GIDs on systemd
// systems"), so nothing on the host belongs to these ids.
const BaseID = 1879048192

// An IDRange is a run of ids that may be mapped: in the current user
// namespace, as in /proc/self/uid_map, or subordinate to the user, as in
// /etc/subuid.
type IDRange struct{ Start, Size int64 }

// contains reports whether id lies in the range.
func (r IDRange) contains(id int64) bool { return id >= r.Start && id < r.Start+r.Size }

// An IDMap gives the host ids of a sandbox's only two ids: 0, which owns its files
// and runs no code of the user's, and the id that the code runs as.
type IDMap struct {
	Root int64 // host id behind container id 0
	User int64 // host id behind the user's id, or -1: there is no second id
}

// mapAsRoot maps both ids away from host root: with 0 mapped to 0, code that breaks
// out could write to every file of the host's root. The host itself always has
// enough ids for that. available is what the current user namespace has (all ids
// on a host, 65536 in most containers).
func mapAsRoot(available []IDRange, want int64) IDMap {
	for _, r := range available {
		if r.contains(BaseID) && r.contains(BaseID+want) {
			return IDMap{Root: BaseID, User: BaseID + want}
		}
	}
	// Inside a container: take the two highest ids that there are, which
	// are the least likely to own anything.
	var ids []int64
	for i := len(available) - 1; i >= 0 && len(ids) < 2; i-- {
		r := available[i]
		for id := r.Start + r.Size - 1; id >= r.Start && id > 0 && len(ids) < 2; id-- {
			ids = append(ids, id)
		}
	}
	if len(ids) < 2 {
		// Root of a namespace with little more than id 0, as made by unshare
		// -r: 0 is some ordinary user, as in MapAsUser.
		return IDMap{Root: 0, User: -1}
	}
	return IDMap{Root: ids[1], User: ids[0]}
}

// MapAsUser maps container root to the ordinary user, which needs no privilege, and
// the id that code runs as to the user's last subordinate id if there is one: the
// first ones are those of users in the containers of other programs.
func MapAsUser(self int64, subordinate []IDRange) IDMap {
	for _, r := range subordinate {
		if r.Size > 0 && !r.contains(self) {
			return IDMap{Root: self, User: r.Start + r.Size - 1}
		}
	}
	return IDMap{Root: self, User: -1}
}

// MaxOwnIDs is how many ids ownIDs returns at most: more than sandboxes of several
// servers that can live at once.
const MaxOwnIDs = 1024

// ownIDs returns ids beside those of m, for sandboxes to have one each as the code's:
// those just below, or above if there are more.
func ownIDs(available []IDRange, m IDMap) IDRange {
	for _, r := range available {
		if !r.contains(m.User) {
			continue
		}
		first, end := max(r.Start, 1), m.User
		switch m.Root {
		case BaseID:
			first = BaseID + 1 // lower ones may be anyone's
		case end - 1:
			end = m.Root
		}
		below := IDRange{max(first, end-MaxOwnIDs), min(MaxOwnIDs, end-first)}
		above := IDRange{m.User + 1, min(MaxOwnIDs, r.Start+r.Size-m.User-1)}
		if above.Size > below.Size {
			return above
		}
		return below
	}
	return IDRange{}
}

// ParseSubIDs reads /etc/subuid or /etc/subgid (subuid(5)): lines of
// "name-or-uid:start:size". Lines of others and lines that make no sense are
// passed over, as newuidmap does.
func ParseSubIDs(r io.Reader, name string, uid int) (out []IDRange) {
	const end = 1 << 32
	found, _ := user.ParseSubIDFilter(r, func(s user.SubID) bool { // as far as it can be read
		return (s.Name == name || s.Name == strconv.Itoa(uid)) && s.SubID > 0 && s.SubID < end && s.Count > 0 && s.Count <= end
	})
	for _, s := range found {
		out = append(out, IDRange{s.SubID, s.Count})
	}
	return out
}

// HasAllIDs reports whether this is the host's own user namespace, in which
// every id can be mapped.
func HasAllIDs() bool {
	ranges, err := readIDRanges("/proc/self/uid_map")
	return err == nil && len(ranges) == 1 && ranges[0] == IDRange{0, 1<<32 - 1}
}

// readIDRanges reads /proc/self/uid_map or gid_map (user_namespaces(7)). The ranges are
// of inside ids.
func readIDRanges(path string) (out []IDRange, err error) {
	all, err := user.ParseIDMapFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the id map: %w", err)
	}
	for _, m := range all {
		out = append(out, IDRange{m.ID, m.Count})
	}
	return out, nil
}

// readSubIDs returns what a file such as /etc/subuid grants to the user; nothing if
// there is no file. In a container the file may name more ids than the container
// has: what goes beyond available is left out.
func readSubIDs(path, name string, uid int, available []IDRange) []IDRange {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	ranges := ParseSubIDs(f, name, uid)
	for i, r := range ranges {
		for _, a := range available {
			if a.contains(r.Start) {
				ranges[i].Size = min(r.Size, a.Start+a.Size-r.Start)
			}
		}
	}
	return ranges
}
