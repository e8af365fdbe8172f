package sandboxed

import (
	"fmt"

	"github.com/toolcell/toolcell/mcpproxy/policy"
	"github.com/toolcell/toolcell/oci/spec"
)

// mountsOf returns the folders and files that a section names. They have to be there. Links are
// followed, but for those that code or a server could have made: it would choose what is shown at the
// next start.
func (l *Launcher) mountsOf(box *policy.Sandbox) (all []spec.Mount, err error) {
	written := l.o.Written()
	for _, m := range box.Mounts {
		real, err := spec.FollowLinks(m.Source, written)
		if err != nil {
			return nil, fmt.Errorf("%s of mounts in %s of %s: %w", m.Source, box.Section, box.File, err)
		}
		all = append(all, spec.Mount{Source: real, Target: m.Target, Writable: m.Write})
	}
	return all, nil
}
