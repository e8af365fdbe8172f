package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/bridge/scriptheader"
	"github.com/toolcell/toolcell/internal/requirement"
	"github.com/toolcell/toolcell/internal/signals"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/policy"
)

// PackagesDir is where a sandbox finds the packages of a run's script. The runner puts
// it into sys.path, before what the image has.
const PackagesDir = "/run/toolcell/packages"

// Needs are what the header of a script asks for, and what it may have.
type Needs struct {
	Python   requirement.Specifier
	Packages []requirement.Requirement
	Grant    *policy.PackageGrant
	File     string    // of the script, if it is one
	Before   time.Time // uploads from then on do not count; zero is none
}

// Invalid marks an error of Options.Packages as one that the code has to put right.
func Invalid(err error) error { return withStatus(StatusValidation, err) }

// IsInvalid reports whether Invalid has marked an error.
func IsInvalid(err error) bool { return err != nil && statusOf(err) == StatusValidation }

// needsOf returns what the header of the code asks for, nil if there is none, or the
// error that it may not have that.
func needsOf(req Request, run *policy.Enforcer) (*Needs, error) {
	header, err := scriptheader.Parse(req.Code)
	if header == nil || err != nil {
		return nil, err
	}
	grant, err := run.GrantPackages(header.Dependencies)
	if err != nil {
		return nil, err
	}
	return &Needs{header.Python, header.Dependencies, grant, req.File, header.Before}, nil
}

// listed reports whether the user's policy lists all of what is asked for, as it is asked
// for: then the index learns nothing of the code but which of these it uses.
func (n *Needs) listed() bool {
	return n.Before.IsZero() && !slices.ContainsFunc(n.Packages, func(r requirement.Requirement) bool { return !n.Grant.Listed(r) })
}

// requirements are the packages as texts, sorted.
func (n *Needs) requirements() (texts []string) {
	if n == nil {
		return nil
	}
	for _, r := range n.Packages {
		texts = append(texts, r.String())
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}

// resolvedPackages are the packages of a sandbox.
type resolvedPackages struct {
	dir          string // on the host; "" is none
	requirements []string
	preload      []string
	recorded     []record.Package
}

// preparePackages gets what a script needs. That may take long; it is not the code's
// time.
func (r *Run) preparePackages(ctx context.Context, image Image) (p resolvedPackages, err error) {
	o, n := r.o, r.needs
	if n == nil {
		return p, nil
	}
	if o.Packages == nil {
		return p, Invalid(errors.New("packages cannot be had here; leave the # /// script header out"))
	}
	start := time.Now()
	set, err := o.Packages(ctx, image, *n, r.req.Progress)
	signals.Resolved(ctx, start, err)
	if ctx.Err() != nil {
		return p, cancelled(ctx, "while its packages were made ready")
	}
	if err != nil {
		return p, withStatus(statusOf(err), err)
	}
	return resolvedPackages{set.Dir, n.requirements(), n.Grant.Preload, set.List}, nil
}

// checkAdded refuses packages that the sandbox of a session does not have.
func (p resolvedPackages) checkAdded(session string, n *Needs) error {
	var more []string
	for _, r := range n.requirements() {
		if !slices.Contains(p.requirements, r) {
			more = append(more, r)
		}
	}
	if more == nil {
		return nil
	}
	has := "none"
	if len(p.requirements) > 0 {
		has = strings.Join(p.requirements, ", ")
	}
	return Invalid(fmt.Errorf("the packages of a session are those of its first run, here %s, so %s cannot be added: use another session, with all packages in the header of its first run; session %q goes on as it is",
		has, strings.Join(more, ", "), session))
}

// missingProgram finds the name in Python's message about a program that is not there.
var missingProgram = text.Pattern(`^FileNotFoundError: \[Errno 2\] No such file or directory: '([A-Za-z0-9._-]{1,100})'$`)

// programHint says how to start a package as a program, if the code has tried to by its
// name: packages come without their scripts.
func (p resolvedPackages) programHint(failure string) string {
	found := missingProgram().FindStringSubmatch(failure)
	if found == nil {
		return ""
	}
	for _, line := range p.requirements {
		if r, err := requirement.Parse(line); err == nil && r.Name == found[1] {
			return fmt.Sprintf("packages come without their scripts: run [sys.executable, \"-m\", %q]", strings.ReplaceAll(found[1], "-", "_"))
		}
	}
	return ""
}

// packageNames returns what tells hints which packages a header may name, and which of
// them the user has named. An index of the user's own has those that they chose.
func (r *Run) packageNames() (may, listed func(name string) bool) {
	if r.o.Packages == nil {
		return nil, nil
	}
	grant := func(name string) (*policy.PackageGrant, error) {
		named, err := requirement.Parse(name)
		if err != nil {
			return nil, err
		}
		return r.policy.GrantPackages([]requirement.Requirement{named})
	}
	may = func(name string) bool {
		_, err := grant(name)
		return err == nil
	}
	listed = func(name string) bool {
		g, err := grant(name)
		return err == nil && (g.Index != policy.DefaultIndex || g.Names(name))
	}
	return may, listed
}
