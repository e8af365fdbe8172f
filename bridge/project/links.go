package project

import (
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/internal/state"
)

// maxLinks is how many links the kernel follows in one path (path_resolution(7)).
const maxLinks = 40

// follow returns what a link in the folder leads to, as code follows it in its sandbox: a path
// in the folder, or "" if it leads elsewhere or into what it is in itself. Such a link
// has a name that is hidden, and so its target is.
func (x *index) follow(link string) string {
	at, rest, links := Target, strings.Split(link, "/"), 0
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		if name == "" || name == "." {
			continue
		}
		at = path.Join(at, name)
		in, inside := strings.CutPrefix(at, Target+"/")
		if !inside {
			if at == "/" || at == Target {
				continue
			}
			return ""
		}
		to, err := x.readLink(in)
		if err != nil {
			return ""
		}
		if to == "" {
			continue
		}
		if links++; links > maxLinks {
			return ""
		}
		if at = path.Dir(at); path.IsAbs(to) {
			at = "/"
		}
		rest = append(strings.Split(to, "/"), rest...)
	}
	to, inside := strings.CutPrefix(at, Target+"/")
	if !inside || strings.HasPrefix(link, to+"/") {
		return ""
	}
	return to
}

// readLink returns what a link contains, "" if it is none.
func (x *index) readLink(at string) (string, error) {
	fd, err := x.openIn(at, unix.O_PATH)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	st, err := state.StampOfFD(fd, at)
	if err != nil || st.Mode&unix.S_IFMT != unix.S_IFLNK {
		return "", err
	}
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, "", buf)
	if err == nil && n == len(buf) {
		err = unix.ENAMETOOLONG
	}
	return string(buf[:max(n, 0)]), err
}
