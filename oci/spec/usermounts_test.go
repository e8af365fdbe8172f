package spec

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"github.com/toolcell/toolcell/oci/host"
)

// TestShowAs: one id is shown as another, and every other id but these two
// stays what it is.
func TestShowAs(t *testing.T) {
	const last = 1<<32 - 2
	for _, tt := range [][2]int64{{1000, host.BaseID}, {host.BaseID, 1000}, {1, 2}, {0, last}} {
		id, as := tt[0], tt[1]
		shown := func(id int64) int64 {
			for _, m := range showAs(tt[0], tt[1]) {
				if in := id - int64(m.ContainerID); in >= 0 && in < int64(m.Size) {
					return int64(m.HostID) + in
				}
			}
			return -1
		}
		for _, other := range []int64{0, 1, 2, 3, 999, 1000, 1001, host.BaseID - 1, host.BaseID, host.BaseID + 1, last} {
			want := map[bool]int64{true: other, false: map[bool]int64{true: as, false: -1}[other == id]}[other != id && other != as]
			if got := shown(other); got != want {
				t.Errorf("%d as %d: %d is shown as %d, want %d", id, as, other, got, want)
			}
		}
		if got := shown(last + 1); got != -1 {
			t.Errorf("what is no id is shown as %d", got)
		}
	}
}

// TestMountsChooseTheIDs: who the code is for what is mounted.
func TestMountsChooseTheIDs(t *testing.T) {
	dir := t.TempDir()
	self := os.Geteuid()
	user := host.IDMap{Root: int64(self), User: 100000}
	for name, tt := range map[string]struct {
		mode     os.FileMode
		writable bool
		want     int64 // h.uids.User after
	}{
		"others may read":  {0o755, false, 100000},
		"private":          {0o700, false, -1},
		"others may enter": {0o711, false, -1},
		"to be written":    {0o755, true, -1},
		"open to all":      {0o777, true, -1}, // or its files would be nobody's
	} {
		at := filepath.Join(dir, name)
		if err := os.Mkdir(at, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(at, tt.mode); err != nil {
			t.Fatal(err)
		}
		h := Host{EUID: max(self, 1), UIDs: user, GIDs: user}
		if self == 0 {
			if err := os.Chown(at, h.EUID, h.EUID); err != nil {
				t.Fatal(err)
			}
		}
		h.ResolveMounts([]Mount{{at, "/data", tt.writable}})
		if h.UIDs.User != tt.want || h.nested() != (tt.want < 0) {
			t.Errorf("%s: the code's id is %d, want %d", name, h.UIDs.User, tt.want)
		}
	}
	// What was given to sandboxes is for all of them.
	h := Host{EUID: self + 1000, UIDs: host.IDMap{Root: 1, User: int64(self)}, GIDs: user, OwnUIDs: host.IDRange{Start: 5, Size: 5}}
	h.ResolveMounts([]Mount{{dir, "/data", true}})
	if h.CodeUIDs().Size != 0 || h.UIDs.User != int64(self) {
		t.Errorf("for a folder of the common id: %+v of %+v", h.UIDs, h.OwnUIDs)
	}
	// What is another's does not make code anybody else.
	h = Host{EUID: self + 1000, UIDs: user, GIDs: user}
	h.ResolveMounts([]Mount{{dir, "/data", true}})
	if h.UIDs.User != 100000 {
		t.Errorf("for another's folder the code's id is %d", h.UIDs.User)
	}
}

func TestRootsFilesAreNeverTheCodes(t *testing.T) {
	h := Host{Admin: true, UIDs: host.IDMap{Root: host.BaseID, User: host.BaseID + 65534}, GIDs: host.IDMap{Root: host.BaseID, User: host.BaseID + 65534}}
	h.Mounts = []ShownMount{{Mount: Mount{"/x", "/y", true}, Owner: 1000, Group: 0, Mapped: true}}
	m := hostMounts(h)[0]
	if !slices.Contains(m.GIDMappings, specs.LinuxIDMapping{ContainerID: 1000, HostID: host.BaseID + 65534, Size: 1}) {
		t.Errorf("groups are shown as %v", m.GIDMappings)
	}
	h = Host{Admin: true, UIDs: h.UIDs, GIDs: h.GIDs}
	h.ResolveMounts([]Mount{{"/", "/data", true}})
	if h.Mounts[0].Mapped {
		t.Error("root's own folder is mapped")
	}
}

func TestMountOptions(t *testing.T) {
	h := Host{Mounts: []ShownMount{{Mount: Mount{"/x", "/y", false}}, {Mount: Mount{"/x", "/z/", true}}}}
	got := hostMounts(h)
	if want := []string{"bind", "nosuid", "nodev", "noexec", "ro"}; !slices.Equal(got[0].Options, want) {
		t.Errorf("options %v, want %v", got[0].Options, want)
	}
	if want := []string{"bind", "nosuid", "nodev", "noexec"}; !slices.Equal(got[1].Options, want) || got[1].Destination != "/z" {
		t.Errorf("%s: options %v, want %v", got[1].Destination, got[1].Options, want)
	}
	if got := h.WritableTargets(); !slices.Equal(got, []string{"/z/"}) {
		t.Errorf("writable are %v", got)
	}
}
