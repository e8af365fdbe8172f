package oci

import (
	"github.com/toolcell/toolcell/oci/container"
	"github.com/toolcell/toolcell/oci/doctor"
	"github.com/toolcell/toolcell/oci/spec"
)

// Root and the others are what a sandbox is made of, in the words of package spec.
type (
	Root   = spec.Root
	Bind   = spec.Bind
	Mount  = spec.Mount
	Limits = spec.Limits
	Python = spec.Python
)

// An Exit is how a sandbox ended.
type Exit = container.Exit

// Check and the others are the results of the checks of this host, in the words
// of package doctor.
type (
	Check     = doctor.Check
	Needs     = doctor.Needs
	HintError = doctor.HintError
)

// The results of a check.
const (
	CheckOK       = doctor.CheckOK
	CheckDegraded = doctor.CheckDegraded // sandboxes run, with something missing
	CheckFatal    = doctor.CheckFatal    // sandboxes cannot run
)

// Examine checks what this host offers a server with these needs. It starts no
// sandbox and leaves nothing behind.
func Examine(n Needs) []Check { return doctor.Examine(n) }

// ExplainFolders puts its cause and cure in front of an error if these folders are
// to blame for it.
func ExplainFolders(err error, dirs ...string) error { return doctor.ExplainFolders(err, dirs...) }

// Advice says what the user can do about an error, "" if that is not known.
func Advice(err error) string { return doctor.Advice(err) }

// Detail returns the text of an error with the words of libraries that Error leaves
// out, for a log.
func Detail(err error) string { return doctor.Detail(err) }
