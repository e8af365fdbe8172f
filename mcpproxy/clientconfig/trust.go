package clientconfig

import (
	"path/filepath"

	"github.com/toolcell/toolcell/internal/state"
)

// A TrustState is what the user said of a file of a project.
type TrustState int

// The states. Changed is a file that was trusted and is another now: it needs
// trust anew, since it may start something else.
const (
	Untrusted TrustState = iota
	Trusted
	Changed
	Declined
)

// Trust remembers which files of projects may start commands, by their path
// and by the digest of what they say.
type Trust struct{ file state.File[verdict] }

// A verdict is what the user said of a file as it was then.
type verdict struct {
	SHA256  string `json:"sha256"`
	Trusted bool   `json:"trusted"`
}

// NewTrust keeps its file in dir.
func NewTrust(dir string) Trust {
	return Trust{state.File[verdict]{Path: filepath.Join(dir, "trust.json")}}
}

// File is where it is kept.
func (t Trust) File() string { return t.file.Path }

// State is for Options.Trusted. When the record cannot be read, nothing
// is trusted.
func (t Trust) State(file, sum string) TrustState {
	all, err := t.file.Read()
	if err != nil {
		return Untrusted
	}
	switch v, ok := all[file]; {
	case !ok:
		return Untrusted
	case v.Trusted && v.SHA256 == sum:
		return Trusted
	case v.Trusted:
		return Changed
	case v.SHA256 == sum:
		return Declined
	}
	return Untrusted
}

// Set notes that the user trusts a file as it is, or declined to.
func (t Trust) Set(file, sum string, trusted bool) error {
	return t.file.Change(func(all map[string]verdict) { all[file] = verdict{sum, trusted} })
}

// Forget takes trust back. It reports whether there was any.
func (t Trust) Forget(file string) (was bool, err error) {
	err = t.file.Change(func(all map[string]verdict) {
		was = all[file].Trusted
		delete(all, file)
	})
	return was, err
}
