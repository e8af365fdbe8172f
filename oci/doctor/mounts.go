package doctor

import (
	"fmt"
	"strings"

	"github.com/moby/sys/mountinfo"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/oci/spec"
)

// mountChecks reports for each mount whether the code can use it.
func mountChecks(h spec.Host) (checks []Check) {
	const code = "RC-MOUNT"
	for _, m := range h.Mounts {
		how := "read"
		if m.Writable {
			how = "read and write"
		}
		denied := h.Denied(m)
		if denied == "" {
			text := fmt.Sprintf("code can %s %s, which is %s here", how, m.Target, m.Source)
			if !m.Project && m.Owner == int64(h.EUID) && h.EUID != 0 && h.UIDs.User < 0 {
				text += "; it has your own user ID for that (isolation: one-id)"
			}
			if m.Mapped && h.OwnUIDs.Size > 0 {
				text += "; runs of one server may share a user ID for that"
			}
			checks = append(checks, OK(code, text))
			continue
		}
		checks = append(checks, Degraded(code, deniedText(h, m, denied), deniedCure(h, m, denied)))
	}
	return checks
}

// DeniedProject returns why code cannot read the folder of a project, and a command that changes
// it, or nothing. It looks at the folder itself.
func DeniedProject(h spec.Host, p spec.Project) (why, cure string) {
	m := h.ProjectMount(p)
	denied := h.Denied(m)
	if denied == "" {
		return "", ""
	}
	return deniedText(h, m, denied), deniedCure(h, m, denied)
}

func deniedText(h spec.Host, m spec.ShownMount, denied string) string {
	return fmt.Sprintf("code cannot %s %s: %s belongs to uid %d (mode %04o), and the code is uid %d for it",
		denied, m.Target, m.Source, m.Owner, m.Mode, h.CodeUID())
}

func deniedCure(h spec.Host, m spec.ShownMount, denied string) string {
	if m.Project {
		return fmt.Sprintf("chmod o+rx %s   # or give code your user ID: --project=off --mounts %[1]s:%s", text.ShellWord(m.Source), m.Target)
	}
	bits := map[string]string{"read": "r", "write": "w"}[denied]
	if m.Dir && denied == "read" {
		bits = "rx"
	}
	switch {
	case h.EUID != 0 && m.Owner == int64(h.EUID):
		return fmt.Sprintf("chmod u+%s %s   # as its owner", bits, text.ShellWord(m.Source))
	case h.Admin && denied == "write":
		or := ", or to an ordinary user"
		if m.Owner != 0 {
			or = "; its file system cannot show its owner's files as the code's"
		}
		return fmt.Sprintf("chown %d %s   # to the id that only sandboxes have%s", h.CodeUID(), text.ShellWord(m.Source), or)
	}
	return fmt.Sprintf("chmod o+%s %s   # or mount a folder of your own", bits, text.ShellWord(m.Source))
}

// DeniedMounts returns notes about mounts that the code cannot use as requested.
func DeniedMounts(h spec.Host) (notes []string) {
	for _, c := range mountChecks(h) {
		if c.Status != CheckOK {
			notes = append(notes, c.Text+"; to fix it: "+c.Cure)
		}
	}
	return notes
}

// submountCheck concerns only the image "host": other images need nothing of /usr, and
// submounts of the user's mounts are covered.
func submountCheck(f *hostFacts) Check {
	const code = "RC-SUBMOUNT"
	if f.host.Recursive || f.host.Admin {
		return OK(code, "the host's own /usr can be shown read-only, with all that may be mounted in it")
	}
	all, err := mountinfo.GetMountsFromReader(strings.NewReader(f.Read("proc/self/mountinfo")), func(m *mountinfo.Info) (skip, stop bool) {
		return !strings.HasPrefix(m.Mountpoint, "/usr/"), false
	})
	if err != nil || len(all) == 0 {
		return OK(code, "the host's own /usr can be shown read-only: nothing is mounted in it")
	}
	var points []string
	for _, m := range all {
		points = append(points, m.Mountpoint)
	}
	return Degraded(code, fmt.Sprintf("the image \"host\" cannot be used: file systems are mounted in /usr (%s), and Linux before 5.12 "+
		"cannot show them read-only", strings.Join(points, ", ")),
		"# use an image:\n"+f.program()+" settings set image python:3.14-slim\n# or start this machine with a kernel of 5.12 or later")
}
