package pypi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/rootfs/packages"
)

// A server's lock is a lock file of PEP 751, behind a line with the digest of what it was
// made for.
const digestLine = "# made by toolcell for requirements of the digest "

// maxFile bounds the file of a lock, in bytes.
const maxFile = 5 << 20

func (s Server) file() string { return filepath.Join(s.Dir, "pylock.toml") }

// digest changes when an entry asks for other packages, or for another Python.
func (s Server) digest() string {
	var lines []string
	for _, r := range s.Requirements {
		lines = append(lines, r.String())
	}
	slices.Sort(lines)
	return fmt.Sprintf("sha256-%x", sha256.Sum256([]byte(strings.Join(append(lines, "python"+s.Python.String()), "\n"))))
}

// read returns the lock and the digest of what it was made for; both are empty if there is none.
func (s Server) read() (lock []byte, digest string, err error) {
	content, err := state.ReadRegular(s.file(), maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("reading the lock: %w", err)
	}
	first, lock, _ := bytes.Cut(content, []byte("\n"))
	digest, ok := strings.CutPrefix(string(first), digestLine)
	if !ok || len(lock) == 0 {
		return nil, "", fmt.Errorf("the lock %s does not say what it was made for; remove it to choose versions anew", s.file())
	}
	return lock, digest, nil
}

// write replaces the lock. The caller holds the server's lock.
func (s Server) write(lock []byte) error {
	err := state.Replace(s.file(), slices.Concat([]byte(digestLine+s.digest()+"\n"), lock), state.Options{Mode: 0o600, Locked: true})
	if err != nil {
		return fmt.Errorf("keeping the versions: %w", err)
	}
	return nil
}

// hold lets no other process change the server's lock.
func (s Server) hold(ctx context.Context) (unlock func(), err error) {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return nil, err
	}
	return state.Lock(ctx, filepath.Join(s.Dir, "pylock.lock"), state.Exclusive)
}

// locked returns the lock for what the entry asks for, and makes it if it is not there.
func (s Server) locked(ctx context.Context, store *packages.Store, r packages.Request) ([]byte, error) {
	lock, digest, err := s.read()
	if err != nil || digest == s.digest() {
		return lock, err
	}
	within, cancel := context.WithTimeoutCause(ctx, r.MaxTime, fmt.Errorf("it took longer than %s ([packages] maxTime)", r.MaxTime))
	defer cancel()
	unlock, err := s.hold(within)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if lock, digest, err = s.read(); err != nil || digest == s.digest() { // another process has made it
		return lock, err
	}
	if lock, err = store.Resolve(within, r); err != nil {
		return nil, err
	}
	return lock, s.write(lock)
}
