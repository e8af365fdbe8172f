package doctor

import (
	"fmt"
	"strings"

	"github.com/moby/sys/mountinfo"
)

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
		"# use an image:\nexport MCP_BRIDGE_IMAGE=python:3.14-slim\n# or start this machine with a kernel of 5.12 or later")
}
