// Package packages gets the packages that a script names, as wheels from a package
// index, and keeps them for all processes of the user.
//
// It promises that no code of a package runs on the host, that what it unpacks is what
// the index's hashes say, stays in its folder and within the limits of the request, and
// that a set it returns is complete. uv chooses the versions, in a sandbox that the
// caller provides (Run). It does not judge what a package does once code imports it.
//
// A store is a folder of
//
//	wheels/    unpacked wheels, each kept once (wheelDir)
//	sets/      the packages of a script, whose files are links to those of wheels (setDir)
//	requests/  which lock each request led to
//	pythons/   the version of an image's Python
//	uv/        the resolver
//	locks/     what the processes that share the store lock
package packages

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/rootfs/cachedir"
	"github.com/toolcell/toolcell/rootfs/fetch"
	"github.com/toolcell/toolcell/rootfs/rootdir"
)

// An Image is the one whose Python will import the packages.
type Image struct {
	ID     string // changes when its files do
	Python string // absolute path of the interpreter inside
}

// A Request asks for the packages of a script.
type Request struct {
	Image        Image
	Ref          string   // of the image, for people
	Run          Run      // starts the resolver
	Requirements []string // one of PEP 508 each, checked by the caller
	Constraints  []string // in the same form, for any package that is chosen
	Index        string   // of PEP 503
	Files        []string // hosts that may serve files, in addition to the index's own
	Credential   *Credential
	ExcludeNewer time.Duration
	Before       time.Time // later uploads are ignored; zero: none is
	MaxBytes     int64     // unpacked
	MaxCount     int
	MaxTime      time.Duration
	// Check may refuse a package that was chosen. If it is nil, all are refused.
	Check func(name, version string) error
	// Lock is a lock file (PEP 751) that must list every package, or nil.
	Lock []byte

	Offline bool // use only what is in the store
	Anew    bool // choose versions again, even if the request was made before
}

// A Credential is an Authorization header for requests to the index, and to no other host.
// It never enters a sandbox.
type Credential struct {
	Authorization string
	Secrets       []string // the parts of it that must not be shown
}

// Progress reports how far the work has come: Done of Total bytes, or only a text.
type Progress struct {
	Done, Total int64
	Text        string
}

// A RequestError is caused by the request itself, not by the network or this host.
type RequestError struct {
	Err    error
	Locked bool // the request had a lock, which may be the cause
}

func (e *RequestError) Error() string { return e.Err.Error() }
func (e *RequestError) Unwrap() error { return e.Err }

func requestErrorf(format string, args ...any) error {
	return &RequestError{Err: fmt.Errorf(format, args...)}
}

// ErrNotLocked is in the chain of an error when Request.Lock lacks a package that the
// request needs.
var ErrNotLocked = errors.New("the lock beside the script does not have")

// ErrOffline is in the chain of an error when packages are not in the store and may not
// be fetched.
var ErrOffline = errors.New("nothing may be fetched")

// A Store is a folder of packages. Several processes may use one at once.
type Store struct {
	dir    string
	uv     string // the user's own, or ""
	cache  *cachedir.Cache
	wheels wheelDir
	sets   setDir
	client *fetch.Client

	// Every run with packages reads these. Without them in memory, a run takes 0.3 ms longer
	// with pandas alone, and 1 ms with thirty packages.
	resolved *cachedir.ParsedFiles[*Lock] // what is in requests
	pythons  *cachedir.ParsedFiles[string]
	bytecode *cachedir.ParsedFiles[bytecodeRecord]
}

// Open opens the store in dir, creating it if needed, and removes what killed processes
// left there. If it cannot be created, the first request returns the error, since most
// runs make none. uv is the path of the user's own uv, or empty.
func Open(dir, uv string) *Store {
	cache, _ := cachedir.Open(dir, "wheels", "sets", "requests", "pythons", "uv")
	s := &Store{
		dir: cache.Dir, uv: uv, cache: cache,
		wheels: wheelDir{filepath.Join(cache.Dir, "wheels")}, sets: setDir{filepath.Join(cache.Dir, "sets"), cache, cachedir.NewParsedFiles(parseJSON[Set])},
		client:   fetch.NewClient(),
		resolved: cachedir.NewParsedFiles(parseKnown), pythons: cachedir.NewParsedFiles(parseJSON[string]), bytecode: cachedir.NewParsedFiles(parseJSON[bytecodeRecord]),
	}
	cache.Sweep("wheels", wheelLock(""))
	cache.Sweep("sets", "")
	cache.Sweep("uv", uvLock(""))
	return s
}

// Close releases all sets: from now on any process may remove them.
func (s *Store) Close() error {
	s.cache.ReleaseAll()
	s.client.Close()
	return nil
}

// The names of locks. A set is locked under its own name while it is made.
const wheelsLock = "wheels" // shared while a set is made, so that no process removes its wheels before

func wheelLock(name string) string   { return "wheel-" + name }
func uvLock(name string) string      { return "uv-" + name }
func requestLock(name string) string { return "request-" + name }

// known is what a request led to.
type known struct {
	Requirements []string  `json:"requirements"`
	Lock         string    `json:"lock"`
	Set          string    `json:"set"` // its ID
	Created      time.Time `json:"created"`
}

// origins returns the hosts that may serve files for a request.
func (r Request) origins() (fetch.Origins, error) {
	authorization := ""
	if r.Credential != nil {
		authorization = r.Credential.Authorization
	}
	from, err := fetch.NewOrigins(r.Index, r.Files, authorization, "which is not the index's host; to allow it, add it to [packages] files")
	if err != nil {
		return from, fmt.Errorf("%s is not the address of a package index", rootdir.Quote(r.Index))
	}
	return from, nil
}

// key names a request. Limits are not part of it: they are checked each time.
func (r Request) key() string {
	requirements := slices.Clone(r.Requirements)
	slices.Sort(requirements)
	fields := []any{setFormat, r.Image, requirements, r.Constraints, r.Index, r.ExcludeNewer, r.Lock}
	if !r.Before.IsZero() {
		fields = append(fields, r.Before)
	}
	text, err := json.Marshal(fields)
	if err != nil {
		panic(err) // of strings
	}
	return fmt.Sprintf("sha256-%x", sha256.Sum256(text))
}

func (s *Store) knownFile(key string) string { return filepath.Join(s.dir, "requests", key+".json") }

// A job is the work on one request.
type job struct {
	*Store
	Request
	key      string
	from     fetch.Origins
	progress func(Progress)
}

// begin starts the work on a request, after a check that no other user can change what
// code will import. Progress may be nil.
func (s *Store) begin(r Request, progress func(Progress)) (*job, error) {
	if err := s.cache.CheckOwn(); err != nil {
		return nil, err
	}
	if progress == nil {
		progress = func(Progress) {}
	}
	from, err := r.origins()
	return &job{s, r, r.key(), from, progress}, err
}

// Ensure returns the set of packages for a request, and fetches what is missing.
// Concurrent calls, also from other processes, share the work. No process removes the set
// while this one runs. Progress may be nil.
func (s *Store) Ensure(ctx context.Context, r Request, progress func(Progress)) (*Set, error) {
	j, err := s.begin(r, progress)
	if err != nil {
		return nil, err
	}
	set, err := j.ensure(ctx)
	if set != nil && set.Bytes > r.MaxBytes { // it was made under another limit
		return nil, errors.Join(err, tooLarge(r.MaxBytes))
	}
	return set, err
}

func (j *job) ensure(ctx context.Context) (*Set, error) {
	if !j.Anew {
		if set, err := j.cached(); set != nil || err != nil {
			return set, err
		}
	}
	within, cancel := context.WithTimeoutCause(ctx, j.MaxTime, fmt.Errorf("it took longer than %s ([packages] maxTime)", j.MaxTime))
	defer cancel()
	set, err := j.fetch(within)
	if within.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("getting the packages: %w", context.Cause(within))
	}
	return set, err
}

// Has reports whether Ensure would find the packages in the store, without the network.
func (s *Store) Has(r Request) bool {
	j, err := s.begin(r, nil)
	if err != nil {
		return false
	}
	set, err := j.cached()
	return set != nil && err == nil
}

// cached returns the set of a request that was made before, or nil.
func (j *job) cached() (*Set, error) {
	lock, err := j.knownLock()
	if lock == nil || err != nil {
		return nil, err
	}
	return j.sets.load(setName(j.Image, lock)), nil
}

// knownLock returns the lock of a request that was made before, or nil.
func (j *job) knownLock() (*Lock, error) {
	lock, err := j.resolved.Read(j.knownFile(j.key))
	if err != nil {
		return nil, nil // it will be resolved again
	}
	return lock, lock.check(j)
}

// parseKnown reads the lock of a known.
func parseKnown(content []byte) (*Lock, error) {
	k, err := parseJSON[known](content)
	if err != nil {
		return nil, err
	}
	lock, err := ParseLock(context.Background(), []byte(k.Lock)) // a file of ours
	if err != nil {
		return nil, err
	}
	lock.choose()
	return lock, nil
}

func parseJSON[T any](content []byte) (v T, err error) {
	err = json.Unmarshal(content, &v)
	return v, err
}

// fetch gets the packages of a request, and records what it led to.
func (j *job) fetch(ctx context.Context) (*Set, error) {
	unlock, err := j.cache.Wait(ctx, requestLock(j.key), state.Exclusive)
	if err != nil {
		return nil, fmt.Errorf("waiting for another process that gets the same packages: %w", err)
	}
	defer unlock()
	var lock *Lock
	if !j.Anew {
		lock, err = j.knownLock()
	}
	if lock == nil && err == nil {
		lock, err = j.resolve(ctx)
	}
	if err != nil {
		return nil, err
	}
	set, err := j.install(ctx, lock)
	if err != nil {
		return nil, err
	}
	return set, j.remember(j.key, lock)
}

// remember records what a request led to.
func (j *job) remember(key string, lock *Lock) error {
	return cachedir.WriteJSON(j.knownFile(key), known{j.Requirements, string(lock.text), setName(j.Image, lock), time.Now().UTC()})
}

// Resolve returns the lock for a request, and fetches no packages. Offline it returns the
// last one. The same request with this lock needs no network if the store has the
// packages.
func (s *Store) Resolve(ctx context.Context, r Request) ([]byte, error) {
	j, err := s.begin(r, nil)
	if err != nil {
		return nil, err
	}
	var lock *Lock
	if r.Offline {
		lock, err = j.knownLock()
	}
	if lock == nil && err == nil {
		lock, err = j.resolve(ctx)
	}
	if err != nil {
		return nil, err
	}
	r.Lock = lock.text
	_ = j.remember(r.key(), lock) // if this fails, the next request asks the index again
	return lock.text, nil
}
