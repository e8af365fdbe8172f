package project

import (
	"path"
	"strings"

	"golang.org/x/sys/unix"
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
		var st unix.Stat_t
		if unix.Fstatat(x.fd, in, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
			return ""
		}
		if st.Mode&unix.S_IFMT != unix.S_IFLNK {
			continue
		}
		if links++; links > maxLinks {
			return ""
		}
		to := x.readLink(in)
		if to == "" {
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

func (x *index) readLink(at string) string {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(x.fd, at, buf)
	if err != nil || n == len(buf) {
		return ""
	}
	return string(buf[:n])
}
