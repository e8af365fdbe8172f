package oci

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// A Check is one fact about this host that sandboxes depend on.
type Check struct {
	Code   string `json:"code"`           // stable, such as RC-USERNS
	Status string `json:"status"`         // CheckOK, CheckDegraded or CheckFatal
	Text   string `json:"text"`           // what was found, and what it costs
	Cure   string `json:"cure,omitempty"` // what to type
}

// How a check came out.
const (
	CheckOK       = "ok"
	CheckDegraded = "degraded" // sandboxes run, with something missing
	CheckFatal    = "fatal"    // sandboxes cannot run
)

// Examine looks at what this host gives to sandboxes with limits l. It starts
// nothing.
func (r *Runtime) Examine(l Limits) []Check {
	checks := []Check{kernelCheck(), userNamespaceCheck()}
	h, err := r.probe()
	if err != nil {
		return append(checks, Check{Code: "RC-HOST", Status: CheckFatal, Text: err.Error()})
	}
	return append(checks, idsCheck(h), cgroupCheck(h, l))
}

func kernelCheck() Check {
	c := Check{Code: "RC-KERNEL", Status: CheckOK}
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return Check{Code: c.Code, Status: CheckDegraded, Text: "the kernel does not tell its version: " + err.Error()}
	}
	c.Text = "Linux " + unix.ByteSliceToString(u.Release[:])
	return c
}

func userNamespaceCheck() Check {
	c := Check{Code: "RC-USERNS", Status: CheckOK, Text: "user namespaces can be made"}
	err := probeNamespaces()
	if err == nil {
		return c
	}
	exe, exeErr := os.Executable()
	if exeErr != nil {
		exe = os.Args[0]
	}
	return Check{
		Code: c.Code, Status: CheckFatal, Cure: userNamespaceHint(exe),
		Text: "user namespaces are forbidden on this host, and without one nothing can run: " + err.Error(),
	}
}

func idsCheck(h host) Check {
	c := Check{Code: "RC-IDS", Status: CheckOK}
	switch {
	case h.euid == 0 && !h.nested():
		c.Text = fmt.Sprintf("running as root: sandboxes are mapped to host ids %d and %d", h.uids.Root, h.uids.User)
	case !h.nested():
		c.Text = fmt.Sprintf("sandboxes use subordinate id %d", h.uids.User)
	case !haveMappingTools():
		c.Text = "newuidmap and newgidmap are missing: code runs under your own id, nested once more (a little slower to start)"
		c.Cure = "sudo apt-get install uidmap"
	default:
		c.Text = "you have no subordinate ids: code runs under your own id, nested once more (a little slower to start)"
		c.Cure = "sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 " + userName(h.euid)
	}
	return c
}

func cgroupCheck(h host, l Limits) Check {
	c := Check{Code: "RC-CGROUP", Status: CheckOK}
	lost := missing(h, l)
	if len(lost) == 0 {
		c.Text = "memory, process and CPU limits are kept by cgroups"
		return c
	}
	c.Status, c.Text = CheckDegraded, lost[0]
	for _, m := range lost[1:] {
		c.Text += "; " + m
	}
	if h.cgroup.V2 && h.euid != 0 {
		c.Cure = "sudo loginctl enable-linger " + userName(h.euid) + " && export XDG_RUNTIME_DIR=/run/user/" + strconv.Itoa(h.euid)
	}
	return c
}
