// Package record keeps what runs did, in files of JSON lines, one for each day and process.
//
// It promises that
//
//   - an entry whose Append has returned is there whatever becomes of this process (not of the host:
//     nothing is synced),
//   - each line has the hash of the line before, so that one that was changed, removed or moved is
//     noticed, as is a file that is missing,
//   - what code, users and servers wrote is bounded, without what looks like a secret, and beside the
//     entries, where it can be forgotten.
//
// It proves nothing to who can write the files, such as a program of the same user, which can make them
// anew: unless hashes are kept elsewhere. It reads no record; package history does.
package record

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolcell/toolcell/bridge/record/secrets"
	"github.com/toolcell/toolcell/internal/contain"
)

// Options configure a Journal.
type Options struct {
	Dir  string // the folder of all records; it is made if it is not there
	Host string // the host's name if empty
	// Command, Version and User are those of each RunStart.
	Command, Version, User string
	// Shared is for commands that end soon: all such processes of a day append to one file, under a
	// lock. Otherwise the journal has its own.
	Shared bool

	Keep     Keep // KeepArguments if empty
	MaxValue int  // most bytes that are kept of a Text; 4 KiB if 0
	// Secrets puts [hidden:NAME] in place of the secrets that are known of a text. It is called often, and may
	// be nil.
	Secrets func(text string) string
	Redact  []*regexp.Regexp // what else is blacked out

	KeepDays int   // days that are kept, with today; 30 if 0
	MaxBytes int64 // of all records: 1 GiB if 0; the days of today and of open files stay

	Log *slog.Logger // of what goes wrong in the background; nil for none

	Now func() time.Time // time.Now if nil

	wrap func(io.Writer) io.Writer // puts what a test has in place of a file
}

const (
	defaultMaxValue = 4 << 10
	defaultKeepDays = 30
	defaultMaxBytes = 1 << 30
)

// A Journal appends entries to the record. It is safe for concurrent use, as are its Runs.
type Journal struct {
	o     Options
	hider *secrets.Hider
	later sync.WaitGroup // lists files and removes old days

	mu      sync.Mutex // of all below, while an entry is written
	segment *segment   // nil before the first entry
	day     int64      // of the segment, in days since 1970
	closed  bool
	pending Torn // what is lost and no entry speaks of
	gap     Gap
}

// A Gap is what of a record could not be written. What ended it, if it has ended, is not known here:
// the next entry that is written says how much is missing.
type Gap struct {
	Entries int
	Values  int   // Texts of entries that are there
	Err     error // why the last of them was not written
}

// Open returns a Journal, which makes no file before its first entry. The caller closes it.
func Open(o Options) *Journal {
	o.Keep = cmp.Or(o.Keep, KeepArguments)
	o.MaxValue = cmp.Or(o.MaxValue, defaultMaxValue)
	o.KeepDays = cmp.Or(o.KeepDays, defaultKeepDays)
	o.MaxBytes = cmp.Or(o.MaxBytes, defaultMaxBytes)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.Host = HostName(o.Host)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.wrap == nil {
		o.wrap = func(w io.Writer) io.Writer { return w }
	}
	return &Journal{o: o, hider: secrets.New(o.Secrets, o.Redact)}
}

// HostName returns a host's name as it is on record, and part of the names of files; that of this host
// if it is empty.
func HostName(host string) string {
	if host == "" {
		host, _ = os.Hostname()
	}
	host, _, _ = strings.Cut(strings.ToLower(host), ".")
	host = strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' {
			return c
		}
		return '_'
	}, host)
	return cmp.Or(host[:min(len(host), 40)], "host")
}

// A Run is one on record. A nil Run records nothing, as for a caller without a journal.
type Run struct {
	j          *Journal
	id, parent string
	salt       [16]byte
	saltText   string
	calls      atomic.Int64
	lost       atomic.Int64

	mu   sync.Mutex
	last chan struct{} // closed when all that was begun is written; nil if nothing was
}

// Begin returns a run to record, of which the first entry is to be a RunStart. The ID is one that no
// other run has, of 64 bytes at most; parent, which may be empty, is of what the run is a part, such as the client's
// request. A nil Journal returns a nil Run.
func (j *Journal) Begin(id, parent string) *Run {
	if id == "" {
		panic("record: a run needs an ID")
	}
	if j == nil {
		return nil
	}
	r := &Run{j: j, id: idOf(id, MaxID), parent: idOf(parent, maxName)}
	_, _ = rand.Read(r.salt[:]) // never fails (crypto/rand)
	r.saltText = hex.EncodeToString(r.salt[:])
	return r
}

// NextCall returns the number of the run's next call, from 1.
func (r *Run) NextCall() int {
	if r == nil {
		return 0
	}
	return int(r.calls.Add(1))
}

// Append writes an entry of the run. Once it has returned without an error, the entry stays whatever
// becomes of this process. The error says why the entry, or a Text of it, is not on record; the next
// entry that can be written tells that something is missing.
func (r *Run) Append(e Entry) error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	before := r.last
	r.mu.Unlock()
	if before != nil {
		<-before
	}
	return r.append(e)
}

// Begin begins to write an entry, while the run goes on; those that follow wait for it. An error is
// only counted.
func (r *Run) Begin(e Entry) {
	if r == nil {
		return
	}
	done := make(chan struct{})
	r.mu.Lock()
	before := r.last
	r.last = done
	r.mu.Unlock()
	go func() {
		defer close(done)
		defer contain.Recover("recording a run", func(error) { r.lost.Add(1) })
		if before != nil {
			<-before
		}
		_ = r.append(e)
	}()
}

func (r *Run) append(e Entry) error {
	err := r.j.append(r, e)
	if err != nil {
		r.lost.Add(1)
	}
	return err
}

// Lost returns how many entries of the run are not on record, or not with all their Texts.
func (r *Run) Lost() int {
	if r == nil {
		return 0
	}
	return int(r.lost.Load())
}

// digest returns the salted digest of a text, in hexadecimal.
func (r *Run) digest(parts ...[]byte) string {
	h := sha256.New()
	if r != nil {
		h.Write(r.salt[:])
	}
	for _, part := range parts {
		h.Write(part)
	}
	var sum [sha256.Size]byte
	return hex.EncodeToString(h.Sum(sum[:0]))
}
