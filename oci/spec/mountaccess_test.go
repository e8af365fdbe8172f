package spec

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"github.com/toolcell/toolcell/oci/host"
	"golang.org/x/sys/unix"
)

// TestDeniedNamesWhatIsMissing: the code is the owner, in the group, or anybody.
func TestDeniedNamesWhatIsMissing(t *testing.T) {
	two, one := host.IDMap{Root: 1000, User: 100000}, host.IDMap{Root: 1000, User: -1}
	const nobodys = 4_000_000_000
	for name, tt := range map[string]struct {
		ids   host.IDMap
		mount ShownMount
		want  string
	}{
		"anybody reads":               {two, ShownMount{Owner: 1, Mode: 0o604}, ""},
		"nobody reads":                {two, ShownMount{Owner: 1, Mode: 0o640}, "read"},
		"a folder":                    {two, ShownMount{Owner: 1, Mode: 0o705, Dir: true}, ""},
		"a folder to list only":       {two, ShownMount{Owner: 1, Mode: 0o704, Dir: true}, "read"},
		"nobody writes":               {two, ShownMount{Owner: 1, Mode: 0o704, Writable: true}, "write"},
		"anybody writes":              {two, ShownMount{Owner: 1, Mode: 0o706, Writable: true}, ""},
		"the code's own":              {two, ShownMount{Owner: 100000, Mode: 0o600, Writable: true}, ""},
		"the code's own, not to read": {two, ShownMount{Owner: 100000, Mode: 0o277}, "read"},
		"the user's, not the code's":  {two, ShownMount{Owner: 1000, Mode: 0o700}, "read"},
		"mapped":                      {two, ShownMount{Owner: 1, Mode: 0o700, Dir: true, Mapped: true}, ""},
		"mapped, not to write":        {two, ShownMount{Owner: 1, Mode: 0o500, Mapped: true, Writable: true}, "write"},
		"the user's, the code is it":  {one, ShownMount{Owner: 1000, Mode: 0o700, Dir: true}, ""},
		"another's":                   {one, ShownMount{Owner: 1, Group: nobodys, Mode: 0o770, Dir: true}, "read"},
		"our group's":                 {one, ShownMount{Owner: 1, Group: int64(os.Getegid()), Mode: 0o050, Dir: true}, ""},
		"of our group, not the code":  {two, ShownMount{Owner: 1, Group: int64(os.Getegid()), Mode: 0o050, Dir: true}, "read"},
	} {
		if got := (Host{UIDs: tt.ids}).Denied(tt.mount); got != tt.want {
			t.Errorf("%s: denied is %q, want %q", name, got, tt.want)
		}
	}
}

// TestWithoutProcTheCodeIsContainerRoot, to the kernel: mounts are for its host ID.
func TestWithoutProcTheCodeIsContainerRoot(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	owner := int64(os.Geteuid())
	own := host.IDRange{Start: 5000, Size: 10}
	for name, tt := range map[string]struct {
		code   int64 // without /proc
		noProc bool
		denied string
		own    host.IDRange
	}{
		"with /proc":          {owner, false, "read", own},
		"another's":           {owner + 1, true, "read", own},
		"the code's, no proc": {owner, true, "", host.IDRange{}},
	} {
		ids := host.IDMap{Root: tt.code, User: 4_000_000_000}
		h := Host{UIDs: ids, GIDs: ids, NoProc: tt.noProc, OwnUIDs: own}
		h.ResolveMounts([]Mount{{Source: dir, Target: "/data"}})
		if got := h.Denied(h.Mounts[0]); got != tt.denied || h.OwnUIDs != tt.own {
			t.Errorf("%s: denied is %q, the code's IDs are %v", name, got, h.OwnUIDs)
		}
		h.Mounts[0].Mapped, h.Mounts[0].Owner, h.Mounts[0].Group = true, 1234, 2345
		want := ids.User
		if tt.noProc {
			want = ids.Root
		}
		m := hostMounts(h)[0]
		for id, maps := range map[uint32][]specs.LinuxIDMapping{1234: m.UIDMappings, 2345: m.GIDMappings} {
			if !slices.Contains(maps, specs.LinuxIDMapping{ContainerID: id, HostID: uint32(want), Size: 1}) {
				t.Errorf("%s: %d is mapped by %v, want to %d", name, id, maps, want)
			}
		}
	}
}

// TestAllGroupsOfTheUserCount: on a single-ID host the code keeps them.
func TestAllGroupsOfTheUserCount(t *testing.T) {
	// Only this thread has the other group, and it ends with the test. Without the right to
	// set groups, we look at those that we have.
	runtime.LockOSThread()
	other := uint32(os.Getegid()) + 4242
	_, _, _ = unix.RawSyscall(unix.SYS_SETGROUPS, 1, uintptr(unsafe.Pointer(&other)), 0)
	groups, err := os.Getgroups()
	if err != nil {
		t.Fatal(err)
	}
	h := Host{UIDs: host.IDMap{Root: 1000, User: -1}}
	for _, group := range append(groups, os.Getegid()) {
		if got := h.Denied(ShownMount{Owner: 1, Group: int64(group), Mode: 0o040}); got != "" {
			t.Errorf("a file of group %d: %s is denied", group, got)
		}
	}
}

func TestReplacedMountIsRefused(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	parent, secret := filepath.Join(dir, "work"), filepath.Join(dir, "secret")
	for _, at := range []string{parent + "/data", secret + "/data"} {
		if err := os.MkdirAll(at, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	h := Host{Mounts: []ShownMount{{Mount: Mount{"/", "/mnt", false}}, {Mount: Mount{parent + "/data", "/data", true}}}}
	if err := h.CheckMounts(); err != nil {
		t.Errorf("as it was: %v", err)
	}
	if err := os.Rename(parent, parent+"2"); err != nil {
		t.Fatal(err)
	}
	refused := func(what, want string) {
		t.Helper()
		err := h.CheckMounts()
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), parent+"/data") {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
	refused("gone", "no such file")
	if err := os.Symlink(secret, parent); err != nil {
		t.Fatal(err)
	}
	refused("a link above it", `it has become a link to "`+secret+`/data"`)
}

// TestSubmountsHaveTheOptionsOfTheirFolder where the kernel can set them, and are covered.
func TestSubmountsHaveTheOptionsOfTheirFolder(t *testing.T) {
	usual := []string{"rbind", "nosuid", "nodev", "noexec"}
	all := []string{"rnosuid", "rnodev", "rnoexec"}
	for _, tt := range []struct {
		recursive, writable bool
		want                []string
	}{
		{false, true, usual},
		{false, false, slices.Concat(usual, []string{"ro"})},
		{true, true, slices.Concat(usual, all)},
		{true, false, slices.Concat(usual, []string{"ro"}, all, []string{"rro"})},
	} {
		h := Host{Recursive: tt.recursive, Mounts: []ShownMount{{Mount: Mount{"/x", "/y", tt.writable}, Below: []string{"/y/z"}}}}
		if got := hostMounts(h)[0].Options; !slices.Equal(got, tt.want) {
			t.Errorf("recursive %t, writable %t: options %v, want %v", tt.recursive, tt.writable, got, tt.want)
		}
		if !slices.Contains(MaskedPaths(h), "/y/z") {
			t.Error("a submount is not covered")
		}
	}
}

func TestMappedMountShowsItsOwnerAsTheCode(t *testing.T) {
	ids := host.IDMap{Root: host.BaseID, User: host.BaseID + 65534}
	h := Host{UIDs: ids, GIDs: ids, Mounts: []ShownMount{{Mount: Mount{"/x", "/y", true}, Owner: 1000, Group: 2000, Mapped: true}}}
	m := hostMounts(h)[0]
	if !slices.Contains(m.Options, "idmap") {
		t.Errorf("options %v", m.Options)
	}
	for id, shown := range map[uint32][]specs.LinuxIDMapping{1000: m.UIDMappings, 2000: m.GIDMappings} {
		if !slices.Contains(shown, specs.LinuxIDMapping{ContainerID: id, HostID: host.BaseID + 65534, Size: 1}) {
			t.Errorf("%d is shown by %v", id, shown)
		}
	}
}

// TestRootMapsWhatThePersonMayUse, and only that; root of a container cannot.
func TestRootMapsWhatThePersonMayUse(t *testing.T) {
	dir := t.TempDir()
	if os.Geteuid() == 0 {
		if err := os.Chown(dir, 1, 1); err != nil {
			t.Fatal(err)
		}
	}
	ids := host.IDMap{Root: host.BaseID, User: host.BaseID + 65534}
	for name, tt := range map[string]struct {
		mode     os.FileMode
		writable bool
		change   func(h *Host)
		want     bool
	}{
		"private":       {0o700, false, func(*Host) {}, true},
		"to be written": {0o755, true, func(*Host) {}, true},
		"to list only":  {0o754, false, func(*Host) {}, true},
		"open to read":  {0o755, false, func(*Host) {}, false},
		"an old kernel": {0o700, true, func(h *Host) { h.NoIDMap = true }, false},
		"not real root": {0o700, true, func(h *Host) { h.Admin = false }, false},
		"one user ID":   {0o700, true, func(h *Host) { h.UIDs.User = -1 }, false},
		"one group ID":  {0o700, true, func(h *Host) { h.GIDs.User = -1 }, false},
		"closed to all": {0o000, true, func(*Host) {}, true},
	} {
		if err := os.Chmod(dir, tt.mode); err != nil {
			t.Fatal(err)
		}
		h := Host{Admin: true, UIDs: ids, GIDs: ids}
		tt.change(&h)
		h.ResolveMounts([]Mount{{dir, "/data", tt.writable}})
		if got := h.Mounts[0].Mapped; got != (tt.want && host.HasAllIDs()) {
			t.Errorf("%s: mapped is %t", name, got)
		}
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
}
