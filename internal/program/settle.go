package program

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/internal/text"
)

// A Version is what `toolcell version --json` says of a program.
type Version struct {
	Version string `json:"version"` // without v
	Date    string `json:"date"`    // of the commit, empty if it is not known
}

// NewerThan reports whether v comes after another version. Builds of one version differ by
// their date.
func (v Version) NewerThan(other Version) bool {
	if order := semver.Compare("v"+v.Version, "v"+other.Version); order != 0 {
		return order > 0
	}
	return v.Date > other.Date
}

// String returns the version, with the date of its commit.
func (v Version) String() string {
	if v.Date == "" {
		return v.Version
	}
	return v.Version + " (" + v.Date + ")"
}

// What Settle did.
const (
	Placed   = "placed"   // the program is at the stable path now
	Replaced = "replaced" // an older one
	Kept     = "kept"     // what is at the stable path is newer
)

// A Settled says by which path clients start the program, and what was done for that.
type Settled struct {
	Path string
	Did  string  // empty if nothing was to be done
	Was  Version // what was at the stable path
}

// Settle returns a path of this program that lasts. If it runs from a place that does not,
// it is copied to StablePath, where it replaces an older one; a newer one stays unless force
// is set. A dry run only says what would be done. The version is this program's. The error
// says what to do instead.
func Settle(ctx context.Context, version Version, force, dry bool) (Settled, error) {
	p := This()
	if path := p.Lasting(); path != "" {
		return Settled{Path: path}, nil
	}
	to := StablePath()
	if p.Path == "" || to == "" {
		return Settled{}, errors.New("there is no HOME to put the program into; set it, or put the program into /usr/local/bin")
	}
	if temporary(p.Path) {
		return Settled{}, errors.New("this program was made by go run, and may lack what sandboxes need; type make install or go install instead")
	}
	own, err := os.ReadFile("/proc/self/exe") // also if it was removed meanwhile
	if err != nil {
		return Settled{}, err
	}
	done := Settled{Path: to, Did: Placed}
	if _, err := os.Stat(to); err == nil {
		// The content, since a full disk may have cut a copy short.
		if there, err := os.ReadFile(to); err == nil && bytes.Equal(there, own) {
			return Settled{Path: to}, nil
		}
		done.Did = Replaced
		// One that does not run is as good as none.
		if done.Was, err = VersionOf(ctx, to); err == nil && done.Was.NewerThan(version) && !force {
			done.Did = Kept
		}
	}
	if done.Did == Kept || dry {
		return done, nil
	}
	if err := p.Origin.place(to, own); err != nil {
		return Settled{}, fmt.Errorf("putting the program at %s, where it lasts: %w; put it into a folder such as /usr/local/bin yourself, and start that", text.ShellWord(to), err)
	}
	return done, nil
}

// temporary reports whether go run has made a program.
func temporary(path string) bool {
	for dir := filepath.Dir(path); dir != "/" && dir != "."; dir = filepath.Dir(dir) {
		if strings.HasPrefix(filepath.Base(dir), "go-build") {
			return true
		}
	}
	return false
}

// versionTime is how long another toolcell may take to say its version.
const versionTime = 10 * time.Second

// VersionOf asks the program at a path for its version.
func VersionOf(ctx context.Context, path string) (Version, error) {
	ctx, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "version", "--json")
	cmd.WaitDelay = time.Second // for what it may have started
	out, err := cmd.Output()
	if err != nil {
		return Version{}, err
	}
	var rows []Version
	if err := json.Unmarshal(out, &rows); err != nil {
		return Version{}, fmt.Errorf("reading its version: %w", err)
	}
	if len(rows) != 1 {
		return Version{}, fmt.Errorf("reading its version: it says %d", len(rows))
	}
	return rows[0], nil
}

// place puts a program of this origin at a path, where clients that start it see the old one or
// the new one, and notes the origin.
func (o Origin) place(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	origin, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		return err
	}
	if err := state.Replace(originFile(), append(origin, '\n'), state.Options{Mode: 0o644}); err != nil {
		return err
	}
	return state.Replace(path, data, state.Options{Mode: 0o755, Exact: true})
}
