// Package serverlock keeps which versions of packages an MCP server gets: they are chosen once, and stay
// until the user accepts others or the server's entry asks for other packages.
//
// A lock is a text of any kind, in a file behind a line with the digest of what it was made for. It is
// replaced as a whole, and processes that need it at the same time make it once.
package serverlock

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/toolcell/toolcell/internal/state"
)

// A File has the lock of one server. Its folder is made if it is missing.
type File struct {
	Path   string
	Digest string // of what the entry asks for
}

// DigestOf returns the digest of what an entry asks for, as lines.
func DigestOf(lines []string) string {
	return fmt.Sprintf("sha256-%x", sha256.Sum256([]byte(strings.Join(lines, "\n"))))
}

// digestLine begins the file.
const digestLine = "# made by toolcell for requirements of the digest "

// maxFile bounds the file, in bytes.
const maxFile = 5 << 20

// Read returns the lock, nil if there is none, and whether it was made for what the entry asks for.
func (f File) Read() (lock []byte, fits bool, err error) {
	content, err := state.ReadRegular(f.Path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("reading the lock: %w", err)
	}
	first, lock, _ := bytes.Cut(content, []byte("\n"))
	digest, ok := strings.CutPrefix(string(first), digestLine)
	if !ok || len(lock) == 0 {
		return nil, false, fmt.Errorf("the lock %s does not say what it was made for; remove it to choose versions anew", f.Path)
	}
	return lock, digest == f.Digest, nil
}

// Ensure returns the lock for what the entry asks for, and has it made if it is not there.
func (f File) Ensure(ctx context.Context, resolve func(context.Context) ([]byte, error)) ([]byte, error) {
	lock, fits, err := f.Read()
	if err != nil || fits {
		return lock, err
	}
	unlock, err := f.hold(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if lock, fits, err = f.Read(); err != nil || fits { // another process has made it
		return lock, err
	}
	if lock, err = resolve(ctx); err != nil {
		return nil, err
	}
	return lock, f.write(lock)
}

// ErrChanged says that another process has replaced a lock meanwhile.
var ErrChanged = errors.New("the versions were changed meanwhile: look at the update again")

// Replace puts another lock in place of was, which Read has returned.
func (f File) Replace(ctx context.Context, was, lock []byte) error {
	unlock, err := f.hold(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	now, _, err := f.Read()
	if err != nil {
		return err
	}
	if !bytes.Equal(now, was) {
		return ErrChanged
	}
	return f.write(lock)
}

// hold lets no other process change the lock.
func (f File) hold(ctx context.Context) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(f.Path), 0o700); err != nil {
		return nil, err
	}
	return state.Lock(ctx, f.Path+".lock", state.Exclusive)
}

func (f File) write(lock []byte) error {
	content := append([]byte(digestLine+f.Digest+"\n"), lock...)
	if err := state.Replace(f.Path, content, state.Options{Mode: 0o600, Locked: true}); err != nil {
		return fmt.Errorf("keeping the versions: %w", err)
	}
	return nil
}
