package inbox

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A folder has the sockets of the user's processes. It is reached by its descriptor:
// the path of a socket has room for 107 bytes only (unix(7)), and state folders may be
// deeper.
type folder struct {
	file *os.File
	path string
}

const (
	socketSuffix = ".sock"
	newSuffix    = ".new" // of a socket that does not listen yet
)

// openFolder opens a folder of sockets that only this user can look into.
func openFolder(path string) (folder, error) {
	f, err := os.OpenFile(path, unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return folder{}, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return folder{}, errors.Join(fmt.Errorf("looking at %s: %w", path, err), f.Close())
	}
	if int(st.Uid) != os.Geteuid() {
		return folder{}, errors.Join(fmt.Errorf("%s belongs to another user; remove it, or set TOOLCELL_STATE_DIR to a folder of yours", path), f.Close())
	}
	return folder{f, path}, nil
}

// makeFolder is openFolder, and makes it first if need be.
func makeFolder(path string) (folder, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return folder{}, err
	}
	d, err := openFolder(path)
	if err != nil {
		return folder{}, err
	}
	if err := d.file.Chmod(0o700); err != nil {
		return folder{}, errors.Join(err, d.close())
	}
	return d, nil
}

func (d folder) close() error { return d.file.Close() }

// at returns a short path of a file in the folder.
func (d folder) at(name string) string {
	return fmt.Sprintf("/proc/self/fd/%d/%s", d.file.Fd(), name)
}

func (d folder) remove(name string) error { return unix.Unlinkat(int(d.file.Fd()), name, 0) }

// names returns the files in the folder whose names end so.
func (d folder) names(suffix string) (names []string) {
	entries, err := os.ReadDir(d.at("."))
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), suffix) {
			names = append(names, e.Name())
		}
	}
	return names
}

// listen makes a socket of this process. It gets its name once it listens, so that
// no other process takes it for a stale one before.
func (d folder) listen() (l *net.UnixListener, name string, err error) {
	base := fmt.Sprintf("%d-%s", os.Getpid(), rand.Text()[:8]) // process IDs are not unique across containers
	l, err = net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: d.at(base + newSuffix)})
	if err != nil {
		return nil, "", fmt.Errorf("making a socket in %s: %w", d.path, err)
	}
	l.SetUnlinkOnClose(false) // by a path that has another file by then
	err = os.Chmod(d.at(base+newSuffix), 0o600)
	if err == nil {
		err = unix.Renameat(int(d.file.Fd()), base+newSuffix, int(d.file.Fd()), base+socketSuffix)
	}
	if err != nil {
		return nil, "", errors.Join(fmt.Errorf("making a socket in %s: %w", d.path, err), l.Close(), d.remove(base+newSuffix))
	}
	return l, base + socketSuffix, nil
}

// dialTime bounds the connecting to a process on this machine.
const dialTime = 2 * time.Second

// connect connects to every process that listens, and removes the sockets of those
// that were killed. Processes that do not accept connections are left out.
func (d folder) connect() (conns []*net.UnixConn) {
	for _, name := range d.names(socketSuffix) {
		c, err := net.DialTimeout("unix", d.at(name), dialTime)
		switch {
		case err == nil:
			conns = append(conns, c.(*net.UnixConn))
		case errors.Is(err, unix.ECONNREFUSED):
			_ = d.remove(name) // it may be removed by another process at the same time
		}
	}
	return conns
}

// newTime is after how long a socket that does not listen yet is one of a process that
// was killed.
const newTime = time.Minute

// sweep removes what killed processes have left.
func (d folder) sweep() {
	for _, c := range d.connect() {
		_ = c.Close() // nothing was written
	}
	for _, name := range d.names(newSuffix) {
		if st, err := os.Lstat(d.at(name)); err == nil && time.Since(st.ModTime()) > newTime {
			_ = d.remove(name)
		}
	}
}

// Dir returns the folder of sockets in a runtime folder.
func Dir(runtime string) string { return filepath.Join(runtime, "approvals") }
