package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/toolcell/toolcell/internal/ostest"
	"github.com/toolcell/toolcell/oci"
)

// pythons gives the newest and the oldest version of Python that there is an
// image of, and another for where any will do.
func pythons() (both []string, another string) {
	if asked := strings.Fields(os.Getenv("TOOLCELL_TEST_PYTHONS")); len(asked) > 0 {
		return asked, asked[0]
	}
	return []string{"3.14", "3.11"}, "3.13"
}

// versions gives the versions of Python that are tried on a host. What differs between them
// does not depend on the kind of host: the first host has all of them, the others the newest.
func (h *host) versions(t *testing.T) []string {
	t.Helper()
	both, _ := pythons()
	if h.name != firstHost(t).name {
		return both[:1]
	}
	return both
}

// numbered gives the number of the Python in the image of a version.
func numbered(version string) string {
	switch version {
	case "musl", "minimal":
		return "3.13"
	}
	return version
}

// A host is a way in which the binary is started.
type host struct {
	name string
	cred *syscall.Credential // nil: as we are
	home string              // its state folder is in it, and stays for all tests
	path string
	wrap []string // what starts the binary, if not we

	start string // TOOLCELL_START, if a test is about it
}

// onFirstHost runs a test on one host, where the others show nothing more.
func onFirstHost(t *testing.T, test func(*testing.T, *host)) { test(t, firstHost(t)) }

// inEveryWay runs a test with sandboxes that are containers and with such as
// are forks of a template: what is promised of the one is of the other.
func inEveryWay(t *testing.T, on func(*testing.T, func(*testing.T, *host)), test func(t *testing.T, h *host)) {
	starts := strings.Fields(os.Getenv("TOOLCELL_TEST_STARTS"))
	if len(starts) == 0 {
		starts = []string{oci.StartContainer, oci.StartFork}
	}
	for _, start := range starts {
		t.Run(start, func(t *testing.T) {
			on(t, func(t *testing.T, h *host) {
				as := *h
				as.start = start
				if start == oci.StartFork && h.name == "no-proc" {
					as.start = oci.StartAuto // there are no forks without a /proc, and containers serve
				}
				test(t, &as)
			})
		})
	}
}

// wantStart fails the test unless a server's sandboxes start as it is to be
// tested: a fork has the template's filter and its own.
func (c *client) wantStart(t *testing.T, h *host) {
	t.Helper()
	filters := map[string]string{oci.StartContainer: "1", oci.StartFork: "2"}[h.start]
	c.python(t, "print([l.split()[1] for l in open('/proc/self/status') if l.startswith('Seccomp_filters')][0])").want(t, filters)
}

// oneIDUser is one that the tests make if they run as root, and keep. It has no subordinate ids.
const oneIDUser = ostest.UserName + "-one-id"

// hosts gives every kind of host that can be had here. The home folders are
// made once, so that an image is unpacked once for each.
var hosts = sync.OnceValues(func() ([]*host, error) {
	self := &host{name: "self", path: os.Getenv("PATH")}
	all := []*host{self}
	if os.Geteuid() == 0 {
		self.name = "root"
		cred, err := ostest.MakeUser(ostest.UserName)
		if err != nil {
			return nil, err
		}
		// useradd gives system users no subordinate ids.
		without, err := ostest.MakeUser(oneIDUser, "--system")
		if err != nil {
			return nil, err
		}
		all = append(all, &host{name: "user", cred: cred, path: self.path})
		all = append(all, &host{name: "user-one-id", cred: without, path: self.path})
	}
	if asked := strings.Fields(os.Getenv("TOOLCELL_TEST_HOSTS")); len(asked) > 0 {
		all = slices.DeleteFunc(all, func(h *host) bool { return !slices.Contains(asked, h.name) })
	}
	for _, h := range all {
		h.home = filepath.Join(shared, h.name)
		if err := os.MkdirAll(h.home, 0o700); err != nil {
			return nil, err
		}
		if h.cred != nil {
			if err := os.Chown(h.home, int(h.cred.Uid), int(h.cred.Gid)); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
})

// onHosts runs a test on every kind of host.
func onHosts(t *testing.T, test func(t *testing.T, h *host)) {
	all, err := hosts()
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range all {
		t.Run(h.name, func(t *testing.T) { test(t, h) })
	}
}

// coverProc starts a program as root of a user namespace in which a part of
// /proc is covered, as in a container: no process in it can mount a /proc.
var coverProc = []string{
	"/usr/bin/unshare", "-Urmpf", "--mount-proc", "--kill-child", "/bin/sh", "-c",
	`command -p mount -t tmpfs none /proc/fs && exec "$@"`, "sh",
}

// onEveryHost runs a test on every kind of host, and as ordinary user where
// there can be no /proc.
func onEveryHost(t *testing.T, test func(t *testing.T, h *host)) {
	onHosts(t, test)
	all, err := hosts()
	if err != nil {
		t.Fatal(err)
	}
	covered := *all[len(all)-1]
	covered.name, covered.wrap = "no-proc", coverProc
	t.Run(covered.name, func(t *testing.T) {
		if _, err := os.Stat(coverProc[0]); err != nil {
			t.Skip("needs unshare: apt-get install util-linux")
		}
		test(t, &covered)
	})
}

// onOrdinaryHosts runs a test on those hosts where we are no root.
func onOrdinaryHosts(t *testing.T, test func(t *testing.T, h *host)) {
	all, err := hosts()
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range all {
		if h.name != "root" {
			t.Run(h.name, func(t *testing.T) { test(t, h) })
		}
	}
}

// firstHost runs a test on one host, where the kind of host does not matter.
func firstHost(t *testing.T) *host {
	t.Helper()
	all, err := hosts()
	if err != nil {
		t.Fatal(err)
	}
	return all[0]
}

// lacks reports whether the host cannot give a thing, as far as that is known.
func (h *host) lacks(thing string) (lacks, known bool) {
	all := strings.Fields(os.Getenv("TOOLCELL_TEST_LACKS"))
	return slices.Contains(all, h.name+":"+thing), len(all) > 0
}
