package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestSetKeepsTheFile as it is but for the setting.
func TestSetKeepsTheFile(t *testing.T) {
	home := inHome(t)
	set := func(name string, values ...string) {
		t.Helper()
		if err := SetInFile(t.Context(), name, values); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	set("max-timeout", "5m")
	info, err := os.Stat(UserFile())
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("a new file: %v, %v", info, err)
	}
	if got := userText(t); got != "max-timeout = \"5m\"\n" {
		t.Errorf("a new file has %q", got)
	}
	writeUserFile(t, "\ufeff# mine\r\ntimeout = 30 # short\r\n\r\n# what code sees\r\nmounts = [\r\n  '/a:/a',\r\n]\r\n# end")
	set("timeout", "1.5")
	set("pids", "64")
	set("insecure-registries", "a:1 b:2,c", "d")
	set("registry-mirrors", "docker.io=m.example,n.example", "ghcr.io=o.example")
	set("allow-self-server", "yes")
	if err := os.Mkdir(filepath.Join(home, "image"), 0o700); err != nil {
		t.Fatal(err)
	}
	set("image", "oci:~/image")
	want := "\ufeff# mine\r\ntimeout = 1.5 # short\r\n\r\n# what code sees\r\nmounts = [\r\n  '/a:/a',\r\n]\r\n" +
		"pids = 64\r\ninsecure-registries = [\"a:1\", \"b:2\", \"c\", \"d\"]\r\n" +
		"registry-mirrors = [\"docker.io=m.example,n.example\", \"ghcr.io=o.example\"]\r\nallow-self-server = true\r\nimage = \"oci:~/image\"\r\n# end"
	if got := userText(t); got != want {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
	for _, name := range []string{"insecure-registries", "registry-mirrors", "allow-self-server", "image", "mounts"} {
		if was, err := RemoveFromFile(t.Context(), name); !was || err != nil {
			t.Errorf("%s: %t, %v", name, was, err)
		}
	}
	if err := os.WriteFile(filepath.Join(home, "p.toml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	set("policy", "~/p.toml")
	set("policy", "")
	set("pids", "") // takes it out, too
	if got, want := userText(t), "\ufeff# mine\r\ntimeout = 1.5 # short\r\n\r\n# what code sees\r\n# end"; got != want {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
	if was, err := RemoveFromFile(t.Context(), "pids"); was || err != nil {
		t.Errorf("what is not there: %t, %v", was, err)
	}
}

// TestSetRefusesWhatServeWould, and changes nothing then.
func TestSetRefusesWhatServeWould(t *testing.T) {
	home := inHome(t)
	writeUserFile(t, "pids = 64\n")
	for want, args := range map[string][]string{
		`timeout: "soon" is not a time; write 30, 30s or 2m`:                                                {"timeout", "soon"},
		"there is no setting max_timeout; did you mean max-timeout?":                                        {"max_timeout", "5m"},
		"there is no setting TOOLCELL_PIDS; did you mean pids?":                                             {"TOOLCELL_PIDS", "5"},
		"timeout takes one value, got 2":                                                                    {"timeout", "5m", "6m"},
		"runtime has no effect; leave it out":                                                               {"runtime", "podman"},
		`mounts: "data" is relative, and a client may start toolcell in any folder: write an absolute path`: {"mounts", "data:/data"},
		"policy: /no/p.toml does not exist":                                                                 {"policy", "/no/p.toml"},
		"uv: /no/uv does not exist":                                                                         {"uv", "/no/uv"},
		"registry-ca: /no/ca.pem does not exist":                                                            {"registry-ca", "/no/ca.pem"},
		"authfile: /no/auth.json does not exist":                                                            {"authfile", "/no/auth.json"},
		"servers-config: / is a directory, not a file":                                                      {"servers-config", "/"},
		`image: reference "foo bar": it is not NAME[:TAG] or NAME@sha256:DIGEST, such as python:3.14-slim`:  {"image", "foo bar"},
		fmt.Sprintf("mounts: %q cannot be mounted: it is, or contains, your home directory; choose a folder that has only what code may see", home): {"mounts", "~/:/data"},
		"mounts: /no/such does not exist":                      {"mounts", "/no/such:/data"},
		"image: /no/layout does not exist":                     {"image", "oci:/no/layout:3.14"},
		"image: " + home + "/no/layout does not exist":         {"image", "oci:~/no/layout"},
		"image: /no/a.tar does not exist":                      {"image", "oci-archive:/no/a.tar"},
		"image: " + UserFile() + "/a.tar does not exist":       {"image", "oci-archive:" + UserFile() + "/a.tar"},
		"image: /no/b.tar does not exist":                      {"image", "docker-archive:/no/b.tar:python:3.14"},
		"image: / is a directory, not a file":                  {"image", "docker-archive:/"},
		"image: " + UserFile() + " is a file, not a directory": {"image", "oci:" + UserFile()},
		"image: reference \"oci:\" names no path":              {"image", "oci:"},
	} {
		if err := SetInFile(t.Context(), args[0], args[1:]); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", args, err, want)
		}
	}
	if _, err := RemoveFromFile(t.Context(), "pidss"); err == nil || err.Error() != "there is no setting pidss; did you mean pids?" {
		t.Errorf("unset: %v", err)
	}
	if got := userText(t); got != "pids = 64\n" {
		t.Errorf("it has %q", got)
	}
	writeUserFile(t, "pids = 64\nx = \n")
	if err := SetInFile(t.Context(), "pids", []string{"65"}); err == nil || err.Error() != "~/.config/toolcell/config.toml:2: expected a value, but the line ends; correct it first" {
		t.Errorf("a broken file: %v", err)
	}
	// What is wrong with other settings can be put right one after the other.
	writeUserFile(t, "pids = 1\nmax_timeout = 3\n")
	_, err := RemoveFromFile(t.Context(), "max_timeout")
	if err := errors.Join(err, SetInFile(t.Context(), "pids", []string{"65"})); err != nil {
		t.Error(err)
	}
	if got := userText(t); got != "pids = 65\n" {
		t.Errorf("it has %q", got)
	}
}

// TestSetFollowsALink, as managers of dotfiles make them, and keeps the mode.
func TestSetFollowsALink(t *testing.T) {
	home := inHome(t)
	real := filepath.Join(home, "dotfiles-config")
	err := errors.Join(os.WriteFile(real, []byte("pids = 64\n"), 0o640), os.MkdirAll(ConfigDir(), 0o700), os.Symlink(real, UserFile()))
	if err != nil {
		t.Fatal(err)
	}
	if s, err := readFlags(); err != nil || s.Runs.Limits.PIDs != 64 {
		t.Errorf("read %d, %v", s.Runs.Limits.PIDs, err)
	}
	if err := SetInFile(t.Context(), "pids", []string{"65"}); err != nil {
		t.Fatal(err)
	}
	link, err1 := os.Lstat(UserFile())
	info, err2 := os.Stat(real)
	if err := errors.Join(err1, err2); err != nil || link.Mode()&fs.ModeSymlink == 0 || info.Mode() != 0o640 || userText(t) != "pids = 65\n" {
		t.Errorf("%v %v %v", link, info, err)
	}
	if err := os.Remove(real); err != nil {
		t.Fatal(err)
	}
	if err := SetInFile(t.Context(), "pids", []string{"66"}); err == nil || !strings.HasSuffix(err.Error(), "it is a link that leads nowhere") {
		t.Errorf("a dead link: %v", err)
	}
}

// TestNoChangeIsLost when several processes set settings, and who reads meanwhile sees a whole file.
func TestNoChangeIsLost(t *testing.T) {
	inHome(t)
	writeUserFile(t, "# mine\n")
	var all sync.WaitGroup
	for name, value := range map[string]string{"pids": "64", "memory": "1g", "timeout": "20s", "sessions": "2", "output": "toon", "pull": "never"} {
		all.Go(func() {
			for range 10 {
				if err := SetInFile(t.Context(), name, []string{value}); err != nil {
					t.Error(err)
				}
				if err := CheckFile(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	s, err := readFlags()
	if err != nil || strings.Count(userText(t), "\n") != 7 || s.Runs.Limits.PIDs != 64 || s.Runs.Sessions != 2 {
		t.Errorf("%v\n%s", err, userText(t))
	}
	if left, err := filepath.Glob(filepath.Join(ConfigDir(), "*")); err != nil || len(left) != 1 {
		t.Errorf("the folder has %q, %v", left, err)
	}
}
