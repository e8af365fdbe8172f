package host

import (
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/moby/sys/user"
)

// BaseID is the first host ID of the range to which real root maps sandboxes. systemd,
// useradd and container engines do not use 1879048192 to 2147483647 (systemd, "Users,
// Groups, UIDs and GIDs on systemd systems"), so nothing on the host belongs to these IDs.
const BaseID = 1879048192

// An IDRange is a range of IDs that may be mapped: those of the current user namespace
// (/proc/self/uid_map), or subordinate IDs of the user (/etc/subuid).
type IDRange struct{ Start, Size int64 }

// Contains reports whether id lies in the range.
func (r IDRange) Contains(id int64) bool { return id >= r.Start && id < r.Start+r.Size }

// An IDMap has the host IDs of a sandbox's only two IDs: 0, which owns its files and runs no
// user code, and the ID that the code runs as.
type IDMap struct {
	Root int64 // host id of container id 0
	User int64 // host id of the code, or -1 on a single-ID host
}

// mapAsRoot maps neither ID to host root: with 0 mapped to 0, code that breaks out could
// write to every file of the host's root. available are the IDs of the current user
// namespace: all on a host, 65536 in most containers.
func mapAsRoot(available []IDRange, want int64) IDMap {
	for _, r := range available {
		if r.Contains(BaseID) && r.Contains(BaseID+want) {
			return IDMap{Root: BaseID, User: BaseID + want}
		}
	}
	// In a container, take the two highest IDs, which are the least likely to own anything.
	var ids []int64
	for i := len(available) - 1; i >= 0 && len(ids) < 2; i-- {
		r := available[i]
		for id := r.Start + r.Size - 1; id >= r.Start && id > 0 && len(ids) < 2; id-- {
			ids = append(ids, id)
		}
	}
	if len(ids) < 2 {
		// Root of a namespace with little more than ID 0, such as that of unshare -r. There 0
		// is some ordinary user, as in MapAsUser.
		return IDMap{Root: 0, User: -1}
	}
	return IDMap{Root: ids[1], User: ids[0]}
}

// MapAsUser maps container root to the ordinary user, which needs no privilege, and the
// code to the user's last subordinate ID, if there is one: the first ones are used in the
// containers of other programs.
func MapAsUser(self int64, subordinate []IDRange) IDMap {
	for _, r := range subordinate {
		if r.Size > 0 && !r.Contains(self) {
			return IDMap{Root: self, User: r.Start + r.Size - 1}
		}
	}
	return IDMap{Root: self, User: -1}
}

// MaxOwnIDs is the largest range that ownIDs returns for code: more than the sandboxes of several
// servers need at once.
const MaxOwnIDs = 1024

// MaxServerIDs is the largest range that it returns for MCP servers, which keep theirs: folders on
// the disk belong to these IDs.
const MaxServerIDs = 256

// minOwnIDs is how many IDs must be left for code where servers get some.
const minOwnIDs = 64

// endOfFree is behind the last ID of the range that begins with BaseID.
const endOfFree = 1 << 31

// ownIDs returns IDs next to those of m, one per sandbox for the code: those just below, or
// above if there are more. No ID is also in the second range, which is for MCP servers, and empty
// if there are too few IDs for both.
func ownIDs(available []IDRange, m IDMap) (code, servers IDRange) {
	for _, r := range available {
		if !r.Contains(m.User) {
			continue
		}
		first, end := max(r.Start, 1), m.User
		switch m.Root {
		case BaseID:
			// Lower ones may be in use. The code's follow from its ID inside, which is a setting, so
			// those of servers are far away from them, the same for each setting.
			code, _ = split(IDRange{BaseID + 1, end - BaseID - 1}, IDRange{end + 1, r.Start + r.Size - end - 1}, 0)
			return code, lastIDs(r, code, m)
		case end - 1:
			end = m.Root
		}
		free := max(end-first, r.Start+r.Size-m.User-1)
		reserved := min(MaxServerIDs, free/4)
		if free-reserved < minOwnIDs {
			reserved = 0
		}
		return split(IDRange{first, end - first}, IDRange{m.User + 1, r.Start + r.Size - m.User - 1}, reserved)
	}
	return IDRange{}, IDRange{}
}

// split takes the IDs for code and behind them so many for servers from the larger of two ranges,
// beginning at the end of the one below, or the start of the one above.
func split(below, above IDRange, servers int64) (forCode, forServers IDRange) {
	const most = MaxOwnIDs + MaxServerIDs // that are of use
	if min(above.Size, most) > min(below.Size, most) {
		n := min(MaxOwnIDs, above.Size-servers)
		return IDRange{above.Start, n}, IDRange{above.Start + n, servers}
	}
	n := min(MaxOwnIDs, below.Size-servers)
	start := below.Start + below.Size - n
	return IDRange{start, n}, IDRange{start - servers, servers}
}

// lastIDs returns the last IDs of r that belong to nothing on a host, for servers.
func lastIDs(r, code IDRange, m IDMap) IDRange {
	end := min(r.Start+r.Size, endOfFree)
	last := IDRange{end - MaxServerIDs, MaxServerIDs}
	if last.Start <= BaseID || last.Contains(m.User) || code.Start < end && last.Start < code.Start+code.Size {
		return IDRange{}
	}
	return last
}

// ParseSubIDs reads /etc/subuid or /etc/subgid (subuid(5)): lines of
// "name-or-uid:start:size". It skips lines of other users and invalid lines, as newuidmap
// does.
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

// readIDRanges reads /proc/self/uid_map or gid_map (user_namespaces(7)). The ranges have the
// IDs inside.
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

// readSubIDs returns the ranges that a file such as /etc/subuid grants to the user, none if
// there is no file. In a container, the file may name more IDs than exist: those beyond
// available are left out.
func readSubIDs(path, name string, uid int, available []IDRange) []IDRange {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	ranges := ParseSubIDs(f, name, uid)
	for i, r := range ranges {
		for _, a := range available {
			if a.Contains(r.Start) {
				ranges[i].Size = min(r.Size, a.Start+a.Size-r.Start)
			}
		}
	}
	return ranges
}
