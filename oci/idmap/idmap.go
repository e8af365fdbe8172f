// Package idmap chooses the host ids that a sandbox's two ids are mapped to, and
// gives each sandbox one of its own.
package idmap

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// Base is the first host id of the range that real root maps sandboxes
// to. 1879048192 to 2147483647 is not given out by systemd, useradd or
// container engines (systemd, "Users, Groups, UIDs and GIDs on systemd
// systems"), so nothing on the host belongs to these ids.
const Base = 1879048192

// A Range is a run of ids that may be mapped: in the current user
// namespace, as in /proc/self/uid_map, or subordinate to the user, as in
// /etc/subuid.
type Range struct{ Start, Size int64 }

// contains reports whether id lies in the range.
func (r Range) contains(id int64) bool { return id >= r.Start && id < r.Start+r.Size }

// A Map gives the host ids of a sandbox's only two ids: 0, which owns its files
// and runs no code of the user's, and the id that the code runs as.
type Map struct {
	Root int64 // host id behind container id 0
	User int64 // host id behind the user's id, or -1: there is no second id
}

// AsRoot maps both ids away from host root: with 0 mapped to 0, code that breaks
// out could write to every file of the host's root. The host itself always has
// enough ids for that. available is what the current user namespace has (all ids
// on a host, 65536 in most containers).
func AsRoot(available []Range, want int64) Map {
	for _, r := range available {
		if r.contains(Base) && r.contains(Base+want) {
			return Map{Root: Base, User: Base + want}
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
		// -r: 0 is some ordinary user, as in AsUser.
		return Map{Root: 0, User: -1}
	}
	return Map{Root: ids[1], User: ids[0]}
}

// AsUser maps container root to the ordinary user, which needs no privilege, and
// the id that code runs as to the user's last subordinate id if there is one: the
// first ones are those of users in the containers of other programs.
func AsUser(self int64, subordinate []Range) Map {
	for _, r := range subordinate {
		if r.Size > 0 && !r.contains(self) {
			return Map{Root: self, User: r.Start + r.Size - 1}
		}
	}
	return Map{Root: self, User: -1}
}

// MaxOwn is how many ids Own returns at most: more than sandboxes of several
// servers that can live at once.
const MaxOwn = 1024

// Own returns ids beside those of m, for sandboxes to have one each as the code's:
// those just below, or above if there are more.
func Own(available []Range, m Map) Range {
	for _, r := range available {
		if !r.contains(m.User) {
			continue
		}
		first, end := max(r.Start, 1), m.User
		switch m.Root {
		case Base:
			first = Base + 1 // lower ones may be anyone's
		case end - 1:
			end = m.Root
		}
		below := Range{max(first, end-MaxOwn), min(MaxOwn, end-first)}
		above := Range{m.User + 1, min(MaxOwn, r.Start+r.Size-m.User-1)}
		if above.Size > below.Size {
			return above
		}
		return below
	}
	return Range{}
}

// parseIDMapFile reads /proc/self/uid_map or gid_map: lines of "inside outside
// size" (user_namespaces(7)). The ranges are of inside ids.
func parseIDMapFile(r io.Reader) ([]Range, error) {
	var out []Range
	for s := bufio.NewScanner(r); s.Scan(); {
		f := strings.Fields(s.Text())
		if len(f) != 3 {
			continue
		}
		start, err1 := strconv.ParseInt(f[0], 10, 64)
		size, err2 := strconv.ParseInt(f[2], 10, 64)
		if err1 != nil || err2 != nil {
			return nil, fmt.Errorf("reading id map line %q", s.Text())
		}
		out = append(out, Range{start, size})
	}
	return out, nil
}

// ParseSubIDs reads /etc/subuid or /etc/subgid (subuid(5)): lines of
// "name-or-uid:start:size". Lines of others and lines that make no sense are
// passed over, as newuidmap does.
func ParseSubIDs(r io.Reader, name string, uid int) []Range {
	var out []Range
	for s := bufio.NewScanner(r); s.Scan(); {
		f := strings.Split(strings.TrimSpace(s.Text()), ":")
		if len(f) != 3 || (f[0] != name && f[0] != strconv.Itoa(uid)) {
			continue
		}
		start, err1 := strconv.ParseInt(f[1], 10, 64)
		size, err2 := strconv.ParseInt(f[2], 10, 64)
		if err1 == nil && err2 == nil && size > 0 && start > 0 {
			out = append(out, Range{start, size})
		}
	}
	return out
}

// HasAll reports whether this is the host's own user namespace, in which
// every id can be mapped.
func HasAll() bool {
	ranges, err := ReadRanges("/proc/self/uid_map")
	return err == nil && len(ranges) == 1 && ranges[0] == Range{0, 1<<32 - 1}
}

// ReadRanges reads /proc/self/uid_map or gid_map.
func ReadRanges(path string) ([]Range, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the id map: %w", err)
	}
	defer f.Close()
	return parseIDMapFile(f)
}

// ReadSubIDs returns what a file such as /etc/subuid grants to the user; nothing if
// there is no file. In a container the file may name more ids than the container
// has: what goes beyond available is left out.
func ReadSubIDs(path, name string, uid int, available []Range) []Range {
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
