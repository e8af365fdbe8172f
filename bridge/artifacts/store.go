package artifacts

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/bridge/imaging"
	"github.com/toolcell/toolcell/internal/text"
)

// Limits bound the files kept of all runs. The zero value means the defaults.
type Limits struct {
	Age  time.Duration // a run's files are removed when they are older; a week if 0
	Size int64         // of all files, in bytes: the oldest go first; 1 GiB if 0
}

// Options configure a Store.
type Options struct {
	Dir      string // where files are kept; none are if empty
	Limits   Limits
	Pictures imaging.Limits // of what one result shows
	Log      *slog.Logger   // nothing is logged if nil
}

// abandoned is the age from which an unfinished folder must belong to a killed
// server: no run takes that long.
const abandoned = 24 * time.Hour

// A Store keeps the artifacts of runs, a folder for each: <dir>/<id>/<name>.
// A folder that is being filled, or removed, has a name with a dot in front.
// Several servers may share dir: folders appear and vanish whole, by rename(2).
type Store struct {
	o        Options
	limits   *atomic.Pointer[Limits]
	decoders *imaging.Decoders
	cleaning *sync.Mutex
}

// explain names the folder in an error that its disk is full. The error itself names a
// file that has another name in the sandbox.
func (s *Store) explain(err error) error {
	if isFull(err) {
		return fmt.Errorf("the disk with %s, where files of runs are kept, is full: %w", s.o.Dir, unix.ENOSPC)
	}
	return err
}

func isFull(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// New makes a store. Its folder is made with the first file.
func New(o Options) *Store {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	s := &Store{o: o, limits: &atomic.Pointer[Limits]{}, decoders: imaging.NewDecoders(o.Pictures), cleaning: &sync.Mutex{}}
	s.SetLimits(o.Limits)
	return s
}

// SetLimits sets what Clean keeps from now on.
func (s *Store) SetLimits(l Limits) {
	l.Age, l.Size = cmp.Or(l.Age, 7*24*time.Hour), cmp.Or(l.Size, 1<<30)
	s.limits.Store(&l)
}

// Within returns the same store for a run whose pictures have other limits.
func (s *Store) Within(pictures imaging.Limits) *Store {
	within := *s
	within.o.Pictures, within.decoders = pictures, s.decoders.Within(pictures)
	return &within
}

// Close waits for decoders whose runs have gone without them. The runs have ended.
func (s *Store) Close() { s.decoders.Wait() }

// runID is the name of a run's folder.
var runID = text.Pattern(`^[0-9a-z]{10,16}$`)

// newRunID returns a name for a run that cannot be guessed and takes few tokens.
func newRunID() string {
	var b [5]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return hex.EncodeToString(b[:])
}

// runsURI starts the URIs of all files of runs; URITemplate is the URI template
// (RFC 6570) that clients are shown.
const (
	runsURI     = "toolcell://runs/"
	URITemplate = runsURI + "{id}/{name}"
)

// fileURI returns the URI of a file. The name may hold any character, so all that
// mean something in a URI are escaped.
func fileURI(id, name string) string {
	return runsURI + id + "/" + strings.ReplaceAll(url.QueryEscape(name), "+", "%20")
}

// createFolder makes the hidden folder of a run that has its first file.
func (s *Store) createFolder(id string) (string, error) {
	if err := os.MkdirAll(s.o.Dir, 0o700); err != nil {
		return "", err
	}
	dir := filepath.Join(s.o.Dir, "."+id)
	return dir, os.Mkdir(dir, 0o700)
}

// publish makes the folder of a run visible to readers.
func (s *Store) publish(id string) (string, error) {
	dir := filepath.Join(s.o.Dir, id)
	return dir, os.Rename(filepath.Join(s.o.Dir, "."+id), dir)
}

// Open opens a kept file by its URI. The caller closes it.
func (s *Store) Open(uri string) (*os.File, error) {
	id, name, ok := strings.Cut(strings.TrimPrefix(uri, runsURI), "/")
	name, err := url.PathUnescape(name)
	if !ok || err != nil || !runID().MatchString(id) || s.o.Dir == "" || name == "" || name != plainName(name) {
		return nil, fmt.Errorf("%q is not the URI of a run's file; the result of a run lists them", text.Bound(uri, 300))
	}
	f, err := os.OpenFile(filepath.Join(s.o.Dir, id, name), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no file %q any more: files of runs are removed after %s, or earlier if all of them take more than %s; run the code again",
			text.Bound(uri, 300), s.limits.Load().Age, text.Size(s.limits.Load().Size))
	}
	return f, err
}

// A keptRun is the folder of a run, as Clean sees it.
type keptRun struct {
	name string
	at   time.Time
	size int64
}

// Clean removes the runs that are too old at the time now, and then the oldest
// until the rest are within the limit. The newest run always stays, since a client
// may be about to read it. Other servers may clean the same folder at the same
// time.
func (s *Store) Clean(now time.Time) {
	if s.o.Dir == "" || !s.cleaning.TryLock() {
		return
	}
	defer s.cleaning.Unlock()
	all, limits := s.list(now), *s.limits.Load()
	var total int64
	for _, r := range all {
		total += r.size
	}
	for i, r := range all {
		old := now.Sub(r.at) > limits.Age
		if !old && (total <= limits.Size || i == len(all)-1) {
			break // those that follow are newer
		}
		s.remove(r.name)
		total -= r.size
	}
}

// list returns the runs that are kept, oldest first, and removes unfinished
// folders of servers that were killed.
func (s *Store) list(now time.Time) (all []keptRun) {
	entries, _ := os.ReadDir(s.o.Dir) // if it cannot be read there is nothing to remove
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.IsDir() {
			continue
		}
		if strings.HasPrefix(e.Name(), ".") {
			if now.Sub(info.ModTime()) > abandoned {
				_ = os.RemoveAll(filepath.Join(s.o.Dir, e.Name()))
			}
			continue
		}
		if runID().MatchString(e.Name()) {
			all = append(all, keptRun{e.Name(), info.ModTime(), sizeOf(filepath.Join(s.o.Dir, e.Name()))})
		}
	}
	slices.SortFunc(all, func(a, b keptRun) int { return a.at.Compare(b.at) })
	return all
}

// sizeOf adds up the files in a folder of ours, which has no folders in it.
func sizeOf(dir string) (sum int64) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			sum += info.Size()
		}
	}
	return sum
}

// remove removes a run as a whole. The server that renames it first removes it.
func (s *Store) remove(name string) {
	gone := filepath.Join(s.o.Dir, ".gone-"+newRunID())
	if err := os.Rename(filepath.Join(s.o.Dir, name), gone); err != nil {
		return // another server did
	}
	if err := os.RemoveAll(gone); err != nil {
		s.o.Log.Warn("removing files of an old run", "err", err)
	}
}

// maxRead bounds a file that goes to a client in one message, in bytes: it is
// a third longer there, and clients take 16 MiB.
const maxRead = 11 << 20

// Read returns a kept file as a resource: as text if its content is text. The error
// is for the client.
func (s *Store) Read(uri string) (*mcp.ResourceContents, error) {
	f, err := s.Open(uri)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	body, err := io.ReadAll(io.LimitReader(f, maxRead+1))
	if err != nil {
		return nil, fmt.Errorf("reading %q: %w", uri, err)
	}
	if len(body) > maxRead {
		return nil, fmt.Errorf("%q has more than the %s that a client takes; on the user's computer it is %s", uri, text.Size(maxRead), f.Name())
	}
	c := &mcp.ResourceContents{URI: uri, MIMEType: typeOf(f.Name())}
	if asText(c.MIMEType, body) {
		c.Text = string(body)
	} else {
		c.Blob = body
	}
	return c, nil
}
