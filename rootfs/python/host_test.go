package python

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/toolcell/toolcell/rootfs/unpack/unpacktest"
)

// inPATH makes a script the only python3 in PATH.
func inPATH(t *testing.T, script string) {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "python3"), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder)
}

// answer is a script that describes itself as an interpreter does.
func answer(t *testing.T, r selfReport) string {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return "echo '" + string(text) + "'"
}

// treeOutside makes a directory with an interpreter py/bin/python3.13. A sandbox has a /tmp of
// its own, so it is not there.
func treeOutside(t *testing.T) string {
	t.Helper()
	tree, err := os.MkdirTemp("/var/tmp", "python-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(tree) })
	for _, folder := range []string{"py/bin", "venv/bin", "bin"} {
		if err := os.MkdirAll(filepath.Join(tree, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(tree, "py/bin/python3.13"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, link := range []string{"venv/bin/python3", "bin/python3"} {
		if err := os.Symlink(tree+"/py/bin/python3.13", filepath.Join(tree, link)); err != nil {
			t.Fatal(err)
		}
	}
	return tree
}

func TestSystemPythonIsFound(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	local := program("usr/local/bin/python3")
	chain := []entry{
		symlink("usr/bin/python3", "../../etc/alternatives/python3"), symlink("etc/alternatives/python3", "../../usr/py/python3.11"),
		program("usr/py/python3.11"),
	}
	for name, c := range map[string]struct {
		entries []entry
		want    string
	}{
		"a file":             {[]entry{program("usr/bin/python3")}, "/usr/bin/python3"},
		"before the local":   {[]entry{program("usr/bin/python3"), local}, "/usr/bin/python3"},
		"only the local":     {[]entry{local}, "/usr/local/bin/python3"},
		"a symlink":          {[]entry{symlink("usr/bin/python3", "python3.13"), program("usr/bin/python3.13")}, "/usr/bin/python3"},
		"the oldest":         {[]entry{symlink("usr/bin/python3", "python3.10"), program("usr/bin/python3.10")}, "/usr/bin/python3"},
		"a chain":            {chain, "/usr/bin/python3"},
		"free-threaded":      {[]entry{symlink("usr/bin/python3", "python3.13t"), program("usr/bin/python3.13t")}, "/usr/bin/python3"},
		"a name of digits":   {[]entry{symlink("usr/bin/python3", "../lib/py/9"), program("usr/lib/py/9")}, "/usr/bin/python3"},
		"too old":            {[]entry{symlink("usr/bin/python3", "python3.9"), program("usr/bin/python3.9")}, ""},
		"too old, not local": {[]entry{symlink("usr/bin/python3", "python3.9"), program("usr/bin/python3.9"), local}, "/usr/local/bin/python3"},
		"a suffix":           {[]entry{symlink("usr/bin/python3", "python3.9-dbg"), program("usr/bin/python3.9-dbg"), local}, "/usr/local/bin/python3"},
		"the platform's":     {[]entry{symlink("usr/bin/python3", "../libexec/platform-python3.6"), program("usr/libexec/platform-python3.6")}, ""},
		"another":            {[]entry{symlink("usr/bin/python3", "pypy3.9"), program("usr/bin/pypy3.9")}, ""},
		"much too old":       {[]entry{symlink("usr/bin/python3", "python2.7"), program("usr/bin/python2.7")}, ""},
		"a newer beside it":  {[]entry{symlink("usr/bin/python3", "python3.9"), program("usr/bin/python3.9"), program("usr/bin/python3.11"), program("usr/local/bin/python3.12")}, "/usr/local/bin/python3.12"},
		"a dangling symlink": {[]entry{symlink("usr/bin/python3", "nowhere"), local}, "/usr/local/bin/python3"},
		"a symlink loop":     {[]entry{symlink("usr/bin/python3", "python3")}, ""},
		"outside /usr":       {[]entry{symlink("usr/bin/python3", "../../opt/bin/python3"), program("opt/bin/python3")}, ""},
		"beside /usr":        {[]entry{symlink("usr/bin/python3", "../../usr2/python3"), program("usr2/python3")}, ""},
		"not executable":     {[]entry{file("usr/bin/python3", "")}, ""},
		"a folder":           {[]entry{dir("usr/bin/python3")}, ""},
		"nothing":            {nil, ""},
	} {
		h, err := FindOnHost(t.Context(), unpacktest.Root(t, c.entries...).Name())
		if h.Exe != c.want || len(h.Dirs) != 0 || (err == nil) != (c.want != "") {
			t.Errorf("%s: got %+v, %v; want %q", name, h, err, c.want)
		}
		if err != nil && !strings.Contains(err.Error(), "this host has no python3 of version 3.10 or newer") {
			t.Errorf("%s: no hint in %v", name, err)
		}
	}
}

// TestPythonOfTheCurrentFolderIsNotRun: with "." in PATH, any folder could bring its own.
func TestPythonOfTheCurrentFolderIsNotRun(t *testing.T) {
	inPATH(t, ": >was-run")
	t.Chdir(os.Getenv("PATH"))
	t.Setenv("PATH", ".")
	if h, err := FindOnHost(t.Context(), t.TempDir()); err == nil || !strings.Contains(err.Error(), "has no python3") {
		t.Errorf("got %+v, %v", h, err)
	}
	if _, err := os.Lstat("was-run"); err == nil {
		t.Error("it was run")
	}
}

func TestPythonInPATHSaysWhatItNeeds(t *testing.T) {
	tree := treeOutside(t)
	home, py, own := tree+"/home", tree+"/py", tree+"/py/bin"
	venv, uv := home+"/src/venv", home+"/.local/share/uv"
	t.Setenv("HOME", home)
	for name, c := range map[string]struct {
		exe, prefix, base string
		dirs              []string
	}{
		"a tree":                {own + "/python3.13", py, py, []string{py}},
		"a virtual environment": {tree + "/venv/bin/python3", tree + "/venv", py, []string{py, tree + "/venv"}},
		"a link into a tree":    {tree + "/bin/python3", py, py, []string{py, tree + "/bin"}},
		"a link, all in /usr":   {tree + "/bin/python3", "/usr", "/usr/local", []string{own, tree + "/bin"}},
		"no prefix":             {own + "/python3.13", "", "", []string{own}},
		"relative prefixes":     {own + "/python3.13", "lib", "..", []string{own}},
		"below home":            {own + "/python3.13", venv, uv, []string{uv, venv, own}},
		"names like others'":    {own + "/python3.13", "/tmp2/py", "/variant", []string{"/variant", "/tmp2/py", own}},
	} {
		inPATH(t, answer(t, selfReport{Executable: c.exe, Prefix: c.prefix, BasePrefix: c.base, Minor: OldestMinor}))
		h, err := FindOnHost(t.Context(), t.TempDir())
		if err != nil || h.Exe != c.exe || !slices.Equal(h.Dirs, c.dirs) {
			t.Errorf("%s: got %+v, %v; want %q", name, h, err, c.dirs)
		}
	}
}

func TestPythonInPrivateFoldersIsRefused(t *testing.T) {
	tree := treeOutside(t)
	home, link := tree+"/home", tree+"/link"
	if err := os.Mkdir(home, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(home, link); err != nil {
		t.Fatal(err)
	}
	const private, mounted = "much else that the sandbox must not see", " of its own"
	for _, c := range []struct{ home, dir, want string }{
		{home, "/", private},
		{home, "/etc", private},
		{home, "/var", private},
		{home, "/var/lib/..", private},
		{home, "/tmp", private},
		{home, tree, private}, // above home
		{home, home, private},
		{home, home + "/", private},
		{home, home + "/.local", private},
		{link, home, private},
		{home, link, private},
		{home, "/home", private}, // of others
		{home, "/root", private},
		{"", "/root", private},
		{"", "/root/.local", private},
		{home, "/tmp/py", "a /tmp" + mounted},
		{home, "/proc/self/root", private}, // a link to the whole disk
		{home, "/tmp/../proc/self", "a /proc" + mounted},
		{home, "/proc/sys", "a /proc" + mounted},
		{home, "/run/toolcell/py", "a /run/toolcell" + mounted},
		{home, "/dev/shm", "a /dev" + mounted},
		{home, "/workspace", "a /workspace" + mounted},
	} {
		t.Setenv("HOME", c.home)
		for _, r := range []selfReport{{Prefix: c.dir, BasePrefix: tree + "/py"}, {Prefix: tree + "/py", BasePrefix: c.dir}} {
			r.Executable, r.Minor = tree+"/py/bin/python3.13", 13
			inPATH(t, answer(t, r))
			h, err := FindOnHost(t.Context(), t.TempDir())
			if err == nil || !strings.Contains(err.Error(), c.want) || h.Exe != "" {
				t.Errorf("%+v with the home %q: got %+v, %v; want %q", r, c.home, h, err, c.want)
			}
		}
	}
}

func TestPythonInPATHIsRefused(t *testing.T) {
	tree := treeOutside(t)
	exe := tree + "/py/bin/python3.13"
	good := selfReport{Executable: exe, Prefix: tree + "/py", BasePrefix: tree + "/py", Minor: 13}
	old, relative, none, gone := good, good, good, good
	old.Minor, relative.Executable, none.Executable, gone.Executable = OldestMinor-1, "bin/python3", "", tree+"/gone"
	for name, c := range map[string]struct{ script, want string }{
		"too old":              {answer(t, old), "is Python 3.9, and 3.10 or newer is needed"},
		"a relative path":      {answer(t, relative), "does not know its own path"},
		"no path":              {answer(t, none), "does not know its own path"},
		"no such file":         {answer(t, gone), "no such file"},
		"fails after answer":   {answer(t, good) + "; exit 3", "what it needs: exit status 3; install"},
		"no answer":            {"", "what it needs: unexpected end of JSON"},
		"no JSON":              {"echo Python 3.13", "what it needs: invalid character"},
		"more than the answer": {answer(t, good) + "; echo welcome", "what it needs: invalid character"},
		"another type":         {`echo '{"minor": "13"}'`, "what it needs: json:"},
	} {
		inPATH(t, c.script)
		h, err := FindOnHost(t.Context(), t.TempDir())
		if err == nil || !strings.Contains(err.Error(), c.want) || h.Exe != "" {
			t.Errorf("%s: got %+v, %v; want %q", name, h, err, c.want)
		}
	}
}

// TestAskingPythonEndsWithItsContext has a shim whose child outlives it, and holds its output
// open.
func TestAskingPythonEndsWithItsContext(t *testing.T) {
	folder := t.TempDir()
	for _, pipe := range []string{"started", "forever"} {
		if err := syscall.Mkfifo(filepath.Join(folder, pipe), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	inPATH(t, "cd '"+folder+"'; (: <forever) & : >started; wait")
	t.Cleanup(func() { // lets the child end
		if f, err := os.OpenFile(filepath.Join(folder, "forever"), os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
			f.Close()
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		if f, err := os.Open(filepath.Join(folder, "started")); err == nil {
			f.Close()
		}
		cancel()
	}()
	if _, err := FindOnHost(ctx, t.TempDir()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
