package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/toolcell/toolcell/oci/doctor"
	"github.com/toolcell/toolcell/oci/spec"
)

// A mount whose source is not there, such as on a disk that is not connected, is no mistake in the
// settings: it may be there the next time. So it is read like the others, commands that run code
// refuse to start, and serve starts and has each run say what is missing: a client would not show
// why it ended.

// An absentMount is one whose source is not there.
type absentMount struct {
	spec.Mount
	why error
}

func (m *absentMount) Error() string {
	if errors.Is(m.why, fs.ErrNotExist) {
		return m.Source + " does not exist"
	}
	return fmt.Sprintf("%s cannot be mounted: %v", m.Source, errors.Unwrap(m.why)) // a PathError has the path, too
}

// allMounts returns the mounts and those that are absent.
func (s Settings) allMounts() []spec.Mount {
	all := slices.Clone(s.Mounts)
	for _, m := range s.absent {
		all = append(all, m.Mount)
	}
	return all
}

// WithoutAbsent returns the settings without the mounts that are not there, for a process that says
// so at each run.
func (s Settings) WithoutAbsent() Settings {
	s.absent = nil
	return s
}

// CheckAbsent returns the error of a mount that was not there when the settings were read, nil if all
// were. It says how to fix it.
func (s Settings) CheckAbsent() error {
	if len(s.absent) == 0 {
		return nil
	}
	hint := "connect the disk that it is on, or correct the path"
	if s.values["mounts"].origin == byFile {
		hint += "; to run without mounts: toolcell settings unset mounts"
	}
	return &doctor.HintError{Err: s.Refuse("mounts", s.absent[0]), Hint: hint}
}

// mountsMoved reports whether a mount has appeared or vanished since the settings were read.
func (s Settings) mountsMoved() bool {
	gone := func(m spec.Mount) bool {
		_, err := os.Stat(m.Source)
		return err != nil
	}
	return slices.ContainsFunc(s.Mounts, gone) || slices.ContainsFunc(s.absent, func(m *absentMount) bool { return !gone(m.Mount) })
}

// check refuses a value that cannot be read, and mounts that are not there: who writes a setting can
// be told so.
func (k Setting) check(value string) error {
	s := new(Settings)
	if err := settingOf(s.groups(), k.Name).read(value); err != nil {
		return err
	}
	return s.firstAbsent()
}

// firstAbsent returns the error of a mount that is not there, nil if all are.
func (s Settings) firstAbsent() error {
	if len(s.absent) == 0 {
		return nil
	}
	return s.absent[0]
}
