package settings

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/oci/doctor"
	"github.com/toolcell/toolcell/oci/spec"
)

// TestSourcesOfMounts are relative to the working directory, or to the home directory.
func TestSourcesOfMounts(t *testing.T) {
	home, work := t.TempDir(), t.TempDir()
	for _, dir := range []string{filepath.Join(home, "notes"), filepath.Join(work, "src")} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("HOME", home)
	t.Chdir(filepath.Join(work, "src"))
	for source, want := range map[string]string{
		".":                   work + "/src",
		"..":                  work,
		"../src":              work + "/src",
		"~/notes":             home + "/notes",
		work + "/src/../src/": work + "/src",
	} {
		m, _, err := parseMount(source + ":/data:rw")
		if err != nil || m.Source != want || m.Target != "/data" || !m.Writable {
			t.Errorf("%s: %+v, %v; want %s", source, m, err, want)
		}
	}
	for text, want := range map[string]string{
		":/data":      "there is no SOURCE",
		".:data":      "write an absolute path in the sandbox, such as /data",
		"./no:/data":  work + "/src/no does not exist",
		"~/no:/data":  home + "/no does not exist",
		"~root:/data": work + "/src/~root does not exist",
	} {
		if _, _, err := parseMount(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if err := Check("TOOLCELL_MOUNTS", ".:/data"); err == nil || !strings.Contains(err.Error(), "write an absolute path") {
		t.Errorf("in a client's file: %v", err)
	}
	if err := Check("TOOLCELL_MOUNTS", work+":/data,~/notes:/notes"); err != nil {
		t.Error(err)
	}
	if err := Check("TOOLCELL_MOUNTS", work+"/no:/data"); err == nil || err.Error() != "setting TOOLCELL_MOUNTS: "+work+"/no does not exist" {
		t.Errorf("in a client's file: %v", err)
	}
}

// TestAbsentMountsAreNoMistake: the disk may be connected later. Whatever runs code says which setting
// it is, and how to fix it.
func TestAbsentMountsAreNoMistake(t *testing.T) {
	home := inHome(t)
	there, disk := filepath.Join(home, "there"), filepath.Join(home, "disk/data")
	if err := os.Mkdir(there, 0o755); err != nil {
		t.Fatal(err)
	}
	const hint = "connect the disk that it is on, or correct the path"
	wantError := func(what string, s Settings, text, hint string) {
		t.Helper()
		if err := s.CheckAbsent(); err == nil || err.Error() != text || doctor.Advice(err) != hint {
			t.Errorf("%s: %v (%s)", what, err, doctor.Advice(err))
		}
		if err := s.WithoutAbsent().CheckAbsent(); err != nil {
			t.Errorf("%s: serve does not start: %v", what, err)
		}
	}
	s, err := readFlags("--mounts", disk+":/data")
	if err != nil {
		t.Fatal(err)
	}
	wantError("a flag", s, "setting --mounts: "+disk+" does not exist", hint)
	writeUserFile(t, "pids = 64\nmounts = ['~/there:/there', '~/disk/data:/data:rw']\n")
	live, log := watched(t, "")
	absent := live.Now()
	if err := absent.CheckMounts(noneWritten); err != nil || len(absent.Mounts) != 1 {
		t.Fatalf("%+v, %v", absent.Mounts, err)
	}
	wantError("a file", absent, "~/.config/toolcell/config.toml:2: mounts: "+disk+" does not exist", hint+"; to run without mounts: toolcell settings unset mounts")
	if err := os.MkdirAll(disk, 0o755); err != nil {
		t.Fatal(err)
	}
	now := live.Now()
	want := []spec.Mount{{Source: there, Target: "/there"}, {Source: disk, Target: "/data", Writable: true}}
	if err := now.CheckAbsent(); err != nil || !slices.Equal(now.Mounts, want) || now.EnvironmentKey() == absent.EnvironmentKey() {
		t.Errorf("connected: %+v, %v", now.Mounts, err)
	}
	if err := os.Remove(disk); err != nil {
		t.Fatal(err)
	}
	wantError("disconnected", live.Now(), "~/.config/toolcell/config.toml:2: mounts: "+disk+" does not exist", hint+"; to run without mounts: toolcell settings unset mounts")
	writeUserFile(t, "pids = 64\n")
	if err := live.Now().CheckAbsent(); err != nil || log.Len() > 0 {
		t.Errorf("after unset: %v, %s", err, log)
	}
}

// TestAbsentMountsAreChecked like the others: what is in their place later could be seen.
func TestAbsentMountsAreChecked(t *testing.T) {
	home := inHome(t)
	if err := os.MkdirAll(filepath.Join(home, "open"), 0o755); err != nil {
		t.Fatal(err)
	}
	for mounts, want := range map[string]string{
		"~/open:/open:rw,~/open/later:/data":  "one is inside the other, which code may write to",
		"~/later:/data,~/later/more:/data/in": "cannot be mounted one inside the other",
		"~/.config/toolcell/later:/data":      "toolcell's own files are in",
		"/etc/later:/data":                    "/etc is the system's",
	} {
		s, err := readFlags("--mounts", mounts)
		if err == nil {
			err = s.CheckMounts(noneWritten)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", mounts, err, want)
		}
	}
}

// TestMountsFollowNoLinksOfSandboxes: what code or a server may write to, it could put a link in, and choose
// what the next start shows.
func TestMountsFollowNoLinksOfSandboxes(t *testing.T) {
	home := inHome(t)
	in := func(name string) string { return filepath.Join(home, name) }
	if err := errors.Join(
		os.MkdirAll(in("open"), 0o755), os.MkdirAll(in("shared"), 0o755), os.MkdirAll(in("private/keys"), 0o755),
		os.Symlink("../private/keys", in("open/planted")), os.Symlink(in("private"), in("shared/planted")),
		os.Symlink(in("open/planted"), in("through")), os.Symlink("private", in("of the user")), os.Symlink("open", in("also open")),
	); err != nil {
		t.Fatal(err)
	}
	const planted = "is a link in a folder that a sandbox may write to"
	for mounts, want := range map[string]string{
		"~/open:/open:rw,~/open/planted:/data":           planted,
		"~/open/planted:/data,~/open:/open:rw":           planted,
		"~/also open:/open:rw,~/also open/planted:/data": planted,
		"~/open:/open:rw,~/through:/data":                planted,
		"~/open:/open:rw,~/open/planted/later:/data":     planted,
		"~/shared/planted:/data":                         planted,
		"~/shared/planted/keys:/data":                    planted,
		"~/open/planted:/data":                           "", // code may not write there
		"~/open:/open:rw,~/of the user:/data":            "",
		"~/of the user/later:/data":                      "",
	} {
		s, err := readFlags("--mounts", mounts)
		if err == nil {
			err = s.CheckMounts(func() []string { return []string{in("shared"), in("missing")} })
		}
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "setting --mounts: ")) {
			t.Errorf("%s: %v, want %s", mounts, err, want)
		}
	}
}

func noneWritten() []string { return nil }
