package bridge

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/mcpproxy/text"
)

// FileLimits say for how long files of runs are kept.
type FileLimits struct {
	Age  time.Duration // a week if 0
	Size int64         // of all of them; 1 GiB if 0
}

// abandoned is the age at which a folder that no run has finished is one of a
// server that was killed: no run takes as long.
const abandoned = 24 * time.Hour

// A runStore keeps the files of runs, a folder for each: <dir>/<id>/<name>.
// One that is being filled, or removed, has a name with a dot in front. Servers
// may share it: folders appear and vanish whole, by rename(2).
type runStore struct {
	dir    string // no file is kept if empty
	limits FileLimits
	log    *slog.Logger

	cleaning sync.Mutex
}

func newRunStore(dir string, l FileLimits, log *slog.Logger) *runStore {
	if l.Age <= 0 {
		l.Age = 7 * 24 * time.Hour
	}
	if l.Size <= 0 {
		l.Size = 1 << 30
	}
	return &runStore{dir: dir, limits: l, log: log}
}

// runID is the name of a run's folder.
var runID = regexp.MustCompile(`^[0-9a-f]{10}$`)

// newRunID names a run so that nobody guesses it, in few tokens.
func newRunID() string {
	var b [5]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return hex.EncodeToString(b[:])
}

// runsURI is what the addresses of all files of runs begin with, and
// runsTemplate says how they go on.
const (
	runsURI      = "toolcell://runs/"
	runsTemplate = runsURI + "{id}/{name}"
)

// fileURI is the address of a file. Everything that has a meaning in an address
// is escaped: a name may hold any of it.
func fileURI(id, name string) string {
	return runsURI + id + "/" + strings.ReplaceAll(url.QueryEscape(name), "+", "%20")
}

// begin makes the folder of a run that has its first file.
func (s *runStore) begin(id string) (string, error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return "", err
	}
	dir := filepath.Join(s.dir, "."+id)
	return dir, os.Mkdir(dir, 0o700)
}

// finish shows the folder of a run to whoever reads.
func (s *runStore) finish(id string) (string, error) {
	dir := filepath.Join(s.dir, id)
	return dir, os.Rename(filepath.Join(s.dir, "."+id), dir)
}

// open opens a kept file by its address.
func (s *runStore) open(uri string) (*os.File, error) {
	id, name, ok := strings.Cut(strings.TrimPrefix(uri, runsURI), "/")
	name, err := url.PathUnescape(name)
	if !ok || err != nil || !runID.MatchString(id) || s.dir == "" || name == "" || name != plainName(name) {
		return nil, fmt.Errorf("%q is no address of a run's file; such are listed in the result of the run", text.Bound(uri, 300))
	}
	f, err := os.OpenFile(filepath.Join(s.dir, id, name), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no file %q any more: files of runs are removed after %s, or earlier if all of them take more than %s; run the code again",
			text.Bound(uri, 300), s.limits.Age, text.Size(s.limits.Size))
	}
	return f, err
}

// A keptRun is the folder of a run, as clean sees it.
type keptRun struct {
	name string
	at   time.Time
	size int64
}

// clean removes what is too old, and then the oldest until the rest is small
// enough. The newest run stays, whatever its size: somebody is about to read
// it. Another server may do the same.
func (s *runStore) clean(now time.Time) {
	if s.dir == "" || !s.cleaning.TryLock() {
		return
	}
	defer s.cleaning.Unlock()
	all := s.list(now)
	var total int64
	for _, r := range all {
		total += r.size
	}
	for i, r := range all {
		old := now.Sub(r.at) > s.limits.Age
		if !old && (total <= s.limits.Size || i == len(all)-1) {
			break // those that follow are newer
		}
		s.remove(r.name)
		total -= r.size
	}
}

// list gives the runs that there are, the oldest first, and removes what
// servers that were killed have left.
func (s *runStore) list(now time.Time) (all []keptRun) {
	entries, _ := os.ReadDir(s.dir) // if it cannot be read there is nothing to remove
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.IsDir() {
			continue
		}
		if strings.HasPrefix(e.Name(), ".") {
			if now.Sub(info.ModTime()) > abandoned {
				_ = os.RemoveAll(filepath.Join(s.dir, e.Name()))
			}
			continue
		}
		if runID.MatchString(e.Name()) {
			all = append(all, keptRun{e.Name(), info.ModTime(), sizeOf(filepath.Join(s.dir, e.Name()))})
		}
	}
	slices.SortFunc(all, func(a, b keptRun) int { return a.at.Compare(b.at) })
	return all
}

// sizeOf adds up the files in a folder of ours, which has no others in it.
func sizeOf(dir string) (sum int64) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			sum += info.Size()
		}
	}
	return sum
}

// remove takes a run away as a whole. Whoever renames it first removes it.
func (s *runStore) remove(name string) {
	gone := filepath.Join(s.dir, ".gone-"+newRunID())
	if err := os.Rename(filepath.Join(s.dir, name), gone); err != nil {
		return // another server did
	}
	if err := os.RemoveAll(gone); err != nil {
		s.log.Warn("removing files of an old run", "err", err)
	}
}
