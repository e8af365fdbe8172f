package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/toolcell/toolcell/oci/spec"
	"github.com/toolcell/toolcell/rootfs"
)

// readProject returns the setting as a command line has it.
func readProject(t *testing.T, flags []cli.Flag, args ...string) (Settings, error) {
	t.Helper()
	var s Settings
	app := &cli.App{Commands: []*cli.Command{{Name: "x", Flags: flags, Action: func(c *cli.Context) (err error) { s, err = Read(c); return err }}}}
	err := app.Run(append([]string{"toolcell", "x"}, args...))
	return s, err
}

// TestProjectNeedsNoValue, as a flag; as a variable it has one.
func TestProjectNeedsNoValue(t *testing.T) {
	for _, tt := range []struct{ env, arg, want string }{
		{"", "", "off"},
		{"", "--project", "read"},
		{"", "--project=read", "read"},
		{"", "--project=off", "off"},
		{"", "--project=", "off"},
		{"read", "", "read"},
		{"Read", "", "read"},
		{"off", "--project", "read"},
		{"read", "--project=off", "off"},
		{"1", "", "read"},
		{"0", "", "off"},
	} {
		t.Setenv("TOOLCELL_PROJECT", tt.env)
		if tt.env == "" {
			os.Unsetenv("TOOLCELL_PROJECT")
		}
		args := []string{}
		if tt.arg != "" {
			args = append(args, tt.arg)
		}
		s, err := readProject(t, Flags(), append(args, "-memory=1g", "code.py")...)
		if err != nil || s.Project != tt.want || s.Runs.Limits.Memory != 1<<30 {
			t.Errorf("%q, %q: %q, %v; want %q", tt.env, tt.arg, s.Project, err, tt.want)
		}
	}
	os.Unsetenv("TOOLCELL_PROJECT")
	if _, err := readProject(t, Flags(), "--project=write"); err == nil || err.Error() != `setting --project: "write" is neither read nor off; code cannot write to the folder` {
		t.Errorf("write: %v", err)
	}
	if err := Check("TOOLCELL_PROJECT", "rw"); err == nil {
		t.Error("rw passes in a client's entry")
	}
}

// TestProjectOfInstallIsNoSetting: there the flag says which file is changed.
func TestProjectOfInstallIsNoSetting(t *testing.T) {
	own := &cli.BoolFlag{Name: "project"}
	s, err := readProject(t, append(Flags("memory"), own), "--project")
	if err != nil || s.Project != "off" || s.Named("project") {
		t.Errorf("project is %q, %v", s.Project, err)
	}
	if OfSetting(own) || !OfSetting(Flags("project")[0]) || !OfSetting(Flags("memory")[0]) {
		t.Error("the flags are not told apart")
	}
}

// TestImageHasRoomForTheProject, or it is said under the name of the setting.
func TestImageHasRoomForTheProject(t *testing.T) {
	image := t.TempDir()
	s := Settings{Project: ProjectRead, Mounts: []spec.Mount{{Source: image, Target: "/data"}}}
	root := &rootfs.Root{Dir: image, Python: "/usr/bin/python3"}
	if err := CheckRoom(root, s.Places()); err != nil {
		t.Errorf("with room: %v", err)
	}
	if err := os.Symlink("usr", filepath.Join(image, "project")); err != nil {
		t.Fatal(err)
	}
	if err := CheckRoom(root, s.Places()); err == nil || !strings.HasPrefix(err.Error(), "showing the client's folder at /project (--project): ") {
		t.Errorf("with a link: %v", err)
	}
	root.Python = "/project/bin/python3"
	if err := CheckRoom(root, s.Places()); err == nil || err.Error() != "showing the client's folder at /project (--project): the image's Python is there, /project/bin/python3; choose another place" {
		t.Errorf("with Python there: %v", err)
	}
	s.Project = ProjectOff
	if err := CheckRoom(root, s.Places()); err != nil || len(s.Places()) != 1 {
		t.Errorf("without the project: %v", err)
	}
}

func TestProjectsThatAreRefused(t *testing.T) {
	home, work := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	s := Settings{Project: ProjectRead, Dirs: Dirs{State: filepath.Join(home, ".local/state/toolcell")}}
	s.Policy = filepath.Join(work, "policy.toml")
	s.Mounts = []spec.Mount{{Source: filepath.Join(work, "out"), Target: "/out", Writable: true}, {Source: work, Target: "/ro"}}
	for dir, want := range map[string]string{
		"/":                                      "it is the whole file system",
		home:                                     "it is, or contains, your home directory",
		filepath.Dir(home):                       "it is, or contains, your home directory",
		"/etc/x":                                 "/etc is the system's",
		"/root/project":                          "/root is the system's",
		filepath.Join(home, ".local"):            "toolcell's own files are in",
		filepath.Join(work, "out/deep"):          "it is inside " + filepath.Join(work, "out") + ", which code may write to",
		filepath.Join(work, "out"):               "",
		work:                                     "",
		filepath.Join(home, "src/shop"):          "",
		filepath.Join(filepath.Dir(work), "any"): "",
	} {
		err := s.CheckProject(dir)
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "not shown at /project")) {
			t.Errorf("%s: %v, want %q", dir, err, want)
		}
	}
	s.Policy = ""
	for target, refused := range map[string]bool{"/project": true, "/project/data": true, "/data": false, "/projects": false} {
		s.Mounts = []spec.Mount{{Source: work, Target: target}}
		err := s.CheckMounts(noneWritten)
		if (err != nil) != refused || refused && !strings.Contains(err.Error(), "both use /project; give --project=off") {
			t.Errorf("%s: %v", target, err)
		}
		s.Project = ProjectOff
		if err := s.CheckMounts(noneWritten); err != nil {
			t.Errorf("%s, without the project: %v", target, err)
		}
		s.Project = ProjectRead
	}
}
