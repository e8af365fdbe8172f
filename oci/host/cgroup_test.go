package host

import (
	"strings"
	"testing"

	"github.com/opencontainers/cgroups"
)

func TestOnlyGroupsOfVersion2Freeze(t *testing.T) {
	for c, want := range map[Cgroup]bool{
		{Driver: CgroupFS, V2: true}: true, {Driver: CgroupSystemd, V2: true}: true, {Driver: CgroupFS}: false, {V2: true}: false,
	} {
		if got := c.Freezes(); got != want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}

// checkCgroup checks that a cgroup limits something, or that the user is told why there is none.
func checkCgroup(t *testing.T, c Cgroup, reason string) {
	t.Helper()
	switch limits := c.Memory || c.PIDs || c.CPU; {
	case c.Driver != CgroupNone:
		if !limits || c.Why != "" {
			t.Errorf("a cgroup that limits nothing, or none after all: %+v", c)
		}
	case limits || !strings.Contains(c.Why, reason) || strings.Contains(c.Why, "probe-"):
		t.Errorf("no cgroup: %+v, want %q", c, reason)
	}
}

func TestCgroupOrWhyThereIsNone(t *testing.T) {
	root := "no cgroup can be made here ("
	checkCgroup(t, tryCgroupFS(Cgroup{Driver: CgroupFS, V2: cgroups.IsCgroup2UnifiedMode()}), root)
	checkCgroup(t, detectCgroup(0), root)
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir()) // with no bus in it
	user := "user"
	if !cgroups.IsCgroup2UnifiedMode() {
		user = "cgroup v1, which an ordinary user cannot use"
	}
	checkCgroup(t, detectCgroup(nobody), user)
	c, err := userSystemd(nobody)
	switch {
	case err == nil:
		t.Errorf("a user that the host has not has %+v", c)
	case !ThisSystem().Systemd() && !strings.Contains(err.Error(), "systemd is not running"):
		t.Error(err)
	}
}
