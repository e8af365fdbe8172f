package container

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/moby/sys/mountinfo"

	"github.com/toolcell/toolcell/oci/spec"
)

// TestUncoveredSecretsAreFound in what a sandbox has mounted.
func TestUncoveredSecretsAreFound(t *testing.T) {
	dir, root := t.TempDir(), ""
	on, err := mountinfo.GetMounts(mountinfo.ParentsFilter(dir))
	if err != nil || len(on) == 0 {
		t.Fatalf("the file system of %s: %v", dir, err)
	}
	last := on[0]
	for _, m := range on {
		if len(m.Mountpoint) >= len(last.Mountpoint) {
			last = m
		}
	}
	root = filepath.Join(last.Root, strings.TrimPrefix(dir, strings.TrimSuffix(last.Mountpoint, "/")))
	line := func(root, at, kind, options string) string {
		return "30 20 " + strconv.Itoa(last.Major) + ":" + strconv.Itoa(last.Minor) + " " + root + " " + at + " " + options + " - " + kind + " none rw\n"
	}
	folder := line(root, "/project", "ext4", "ro,nosuid")
	null := line("/null", "/project/.env", "devtmpfs", "rw")
	cover := line("/", "/project/keys", "tmpfs", "ro,nosuid")
	for name, tt := range map[string]struct {
		info   string
		hidden []string
		want   error
	}{
		"nothing to hide":            {folder, nil, nil},
		"covered":                    {folder + null + cover, []string{"/project/.env", "/project/keys"}, nil},
		"what is above is covered":   {folder + line("/", "/project/sub", "ext4", "rw") + line("/", "/project/sub", "tmpfs", "ro"), []string{"/project/sub/a/b.pem"}, nil},
		"a file uncovered":           {folder + cover, []string{"/project/.env", "/project/keys"}, ErrProjectChanged},
		"the folder is gone":         {null, []string{"/project/.env"}, ErrProjectChanged},
		"another folder":             {line("/etc", "/project", "ext4", "ro") + null, []string{"/project/.env"}, ErrProjectChanged},
		"covered by what is written": {folder + line("/", "/project/keys", "tmpfs", "rw"), []string{"/project/keys"}, errNewMount},
		"mounted, and not to hide":   {folder + cover, nil, errNewMount},
	} {
		shown := spec.ShownMount{Source: dir, Target: "/project", Project: true, Below: []string{"/project/sub"}, Hidden: tt.hidden}
		if err := uncovered([]byte(tt.info), []spec.ShownMount{shown}); !errors.Is(err, tt.want) || tt.want == nil && err != nil {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
}

// TestProjectsOfOthersAreFound: a process that shows none is not taken for one that does.
func TestProjectsOfOthersAreFound(t *testing.T) {
	var h spec.Host
	if err := CheckProject(os.Getpid(), h); err != nil {
		t.Errorf("without a project: %v", err)
	}
	h = h.Showing(&spec.Project{Source: t.TempDir()})
	if err := CheckProject(os.Getpid(), h); !errors.Is(err, ErrProjectChanged) {
		t.Errorf("of this process: %v", err)
	}
	if err := CheckProject(-1, h); err == nil {
		t.Error("a process that has ended passes")
	}
}

func TestRefusedCoversAreTriedAgain(t *testing.T) {
	for text, want := range map[string]bool{
		`starting the sandbox: can't mask path "/project/a/.env": not a directory`: true,
		"starting the sandbox: no space left on device":                            false,
	} {
		if got := coverRefused(errors.New(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	if coverRefused(nil) {
		t.Error("no error is one")
	}
}
