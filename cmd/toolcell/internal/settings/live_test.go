package settings

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// watched returns the settings of a process with these flags in a project, and what it logs.
func watched(t *testing.T, dir string, flags ...string) (*Live, *bytes.Buffer) {
	t.Helper()
	s, err := readFlags(flags...)
	if err != nil {
		t.Fatal(err)
	}
	log := &bytes.Buffer{}
	return s.Watch(dir, slog.New(slog.NewTextHandler(log, nil))), log
}

func pidsAndOutput(s Settings) string { return fmt.Sprint(s.Runs.Limits.PIDs, " ", s.Bridge.Output) }

// TestChangesCountForTheNextRun, and flags and variables still win.
func TestChangesCountForTheNextRun(t *testing.T) {
	inHome(t)
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("TOOLCELL_MEMORY", "1g")
	live, log := watched(t, dir, "--output", "json")
	check := func(want string) {
		t.Helper()
		if got := pidsAndOutput(live.Now()); got != want || live.Now().Runs.Limits.Memory != 1<<30 {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	check("128 json")
	writeUserFile(t, "pids = 64\noutput = 'toon'\nmemory = '2g'\n")
	check("64 json")
	project := filepath.Join(dir, ProjectFile)
	if err := os.WriteFile(project, []byte("pids = 32"), 0o600); err != nil {
		t.Fatal(err)
	}
	check("32 json")
	if err := os.WriteFile(project, []byte("image = 'host'"), 0o600); err != nil {
		t.Fatal(err)
	}
	check("64 json") // the user's count
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "level=WARN") || !strings.Contains(got, ".toolcell.toml:1: image cannot be set in .toolcell.toml") || live.Note() != "" {
		t.Errorf("the log has %s", got)
	}
	if err := os.Remove(UserFile()); err != nil {
		t.Fatal(err)
	}
	check("128 json")
}

// TestABrokenFileLeavesTheLastGoodValues, which the log says once, and one run.
func TestABrokenFileLeavesTheLastGoodValues(t *testing.T) {
	inHome(t)
	writeUserFile(t, "pids = 64\n")
	live, log := watched(t, "")
	for i, broken := range []string{"pids = 32\nx =", "pids = 1", "pidss = 32"} {
		writeUserFile(t, broken)
		for range 3 {
			if got := live.Now().Runs.Limits.PIDs; got != 64 {
				t.Errorf("%s: %d", broken, got)
			}
		}
		note := live.Note()
		if !strings.HasPrefix(note, "the settings now have a mistake, so the earlier ones stay in effect: ~/.config/toolcell/config.toml:") || live.Note() != note {
			t.Errorf("%s: the note is %q", broken, note)
		}
		if got := strings.Count(log.String(), "level=ERROR"); got != i+1 {
			t.Errorf("%s: the log has %s", broken, log)
		}
	}
	writeUserFile(t, "pids = 16")
	if got := live.Now().Runs.Limits.PIDs; got != 16 || live.Note() != "" {
		t.Errorf("put right: %d", got)
	}
}

// TestWhatCountsAtTheNextStartIsSaid, once for each change.
func TestWhatCountsAtTheNextStartIsSaid(t *testing.T) {
	inHome(t)
	writeUserFile(t, "image = 'host'\n")
	live, log := watched(t, "")
	for text, want := range map[string]int{"image = 'host'\npids = 64": 0} {
		writeUserFile(t, text)
		if live.Now(); strings.Count(log.String(), "\n") != want {
			t.Errorf("%s: %s", text, log)
		}
	}
	for range 3 {
		writeUserFile(t, "image = 'python:3.13'\nallow-self-server = true\nsessions = 2\npids = 6"+fmt.Sprint(log.Len()))
		live.Now()
	}
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `settings="[sessions allow-self-server]"`) {
		t.Errorf("the log has %s", got)
	}
}

// TestWhatMakesAnotherEnvironment: each setting of what code runs in does, and no other.
func TestWhatMakesAnotherEnvironment(t *testing.T) {
	home := inHome(t)
	folder := filepath.Join(home, "data")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	writeUserFile(t, "")
	live, _ := watched(t, "")
	before := live.Now().EnvironmentKey()
	values := map[string]string{
		"image": `"python:3.14-slim"`, "uv": `"` + folder + `"`, "container-user": `"1:2"`, "mounts": `["` + folder + `:/data"]`, "project": `"read"`, "start": `"container"`,
		"idle-timeout": `"1m"`, "pull": `"never"`, "platform": `"linux/arm64"`, "registry-mirrors": `["a=b"]`, "registry-ca": `"` + folder + `"`,
		"authfile": `"` + folder + `"`, "insecure-registries": `["a.example"]`, "image-max-size": `"1g"`, "image-max-files": "1000", "log-level": `"DEBUG"`,
		"timeout": "5", "max-timeout": "300", "memory": `"1g"`, "pids": "64", "cpus": "1", "preload": `["json"]`, "session-idle-timeout": `"1m"`,
		"approval-timeout": `"1m"`, "form-timeout": `"1m"`, "output": `"toon"`, "output-bytes": `"64k"`, "pictures": "1", "picture-size": "100",
		"picture-bytes": `"100k"`, "files-max-age": `"1h"`, "files-max-size": `"1m"`, "start-timeout": `"1m"`,
	}
	for _, k := range All {
		if slices.Contains(fixed, k.Name) {
			continue
		}
		if values[k.Name] == "" {
			t.Errorf("there is no value of %s to try", k.Name)
			continue
		}
		writeUserFile(t, k.Name+" = "+values[k.Name])
		if changed := live.Now().EnvironmentKey() != before; changed != (slices.Contains(ofEnvironment, k.Name) && k.Name != "state-dir") {
			t.Errorf("%s = %s: another environment: %v; %s", k.Name, values[k.Name], changed, live.Note())
		}
	}
}

// TestReadersAndWritersMeet, for the race detector.
func TestReadersAndWritersMeet(t *testing.T) {
	inHome(t)
	writeUserFile(t, "pids = 64\n")
	live, _ := watched(t, "")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 50 {
				if n := live.Now().Runs.Limits.PIDs; n != 64 && n != 65 {
					t.Errorf("a value that was never written: %d", n)
				}
				_ = live.Note()
			}
		})
	}
	all.Go(func() {
		for i := range 50 {
			if err := SetInFile(t.Context(), "pids", []string{fmt.Sprint(64 + i%2)}); err != nil {
				t.Error(err)
			}
		}
	})
	all.Wait()
}
