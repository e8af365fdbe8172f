package program

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// home is a home in which files are made, and no other place for programs is set.
func home(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", dir)
	for _, name := range []string{"XDG_DATA_HOME", "GOBIN", "GOPATH"} {
		t.Setenv(name, "")
	}
	t.Setenv("PATH", "/usr/bin:/bin")
	return dir
}

func put(t *testing.T, path, text string) string {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755)); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestOriginIsKnownByWhatIsAround: HOME in a path and in what is to be typed stands for the home.
func TestOriginIsKnownByWhatIsAround(t *testing.T) {
	// No machine has these Pythons, so that its own are not looked at.
	const metadata = "lib/python3.99/site-packages/toolcell-0.1.0.dist-info/METADATA"
	newest := `"$(ls -v toolcell-*-linux-` + runtime.GOARCH + `.tar.gz | tail -n 1)"`
	for name, c := range map[string]struct {
		path    string
		around  []string // files beside the prefix of path
		from    string
		in      Registry
		upgrade string
		remove  string
		lasting bool
	}{
		"uvx": {
			"HOME/.cache/uv/archive-v0/Xy3/bin/toolcell",
			[]string{metadata, "pyvenv.cfg"},
			"uvx", PyPI,
			"uvx toolcell@latest upgrade", "uv cache clean toolcell", false,
		},
		"uv tool": {
			"HOME/.local/share/uv/tools/toolcell/bin/toolcell",
			[]string{metadata, "pyvenv.cfg", "uv-receipt.toml"},
			"uv tool", PyPI,
			"uv tool upgrade toolcell", "uv tool uninstall toolcell", true,
		},
		"pipx": {
			"HOME/.local/share/pipx/venvs/toolcell/bin/toolcell",
			[]string{metadata, "pyvenv.cfg", "pipx_metadata.json"},
			"pipx", PyPI,
			"pipx upgrade toolcell", "pipx uninstall toolcell", true,
		},
		"pip in a venv": {
			"HOME/a b/bin/toolcell",
			[]string{metadata, "pyvenv.cfg", "bin/pip"},
			"pip", PyPI,
			"'HOME/a b/bin/pip' install --upgrade toolcell && 'HOME/a b/bin/toolcell' upgrade", "'HOME/a b/bin/pip' uninstall toolcell", false,
		},
		"uv in a venv": {
			"HOME/x/.venv/bin/toolcell",
			[]string{metadata, "pyvenv.cfg"},
			"uv pip", PyPI,
			"uv pip install --python HOME/x/.venv/bin/python --upgrade toolcell && HOME/x/.venv/bin/toolcell upgrade",
			"uv pip uninstall --python HOME/x/.venv/bin/python toolcell", false,
		},
		"pip --user": {
			"HOME/.local/bin/toolcell",
			[]string{metadata},
			"pip", PyPI,
			"pip install --upgrade toolcell", "pip uninstall toolcell", true,
		},
		"pip of Debian": {
			"HOME/.local/bin/toolcell",
			[]string{"lib/python3.98/dist-packages/toolcell-0.1.0.dist-info/RECORD"},
			"pip", PyPI,
			"pip install --upgrade toolcell", "pip uninstall toolcell", true,
		},
		"pip that needs a flag": {
			"HOME/.local/bin/toolcell",
			[]string{metadata, "lib/python3.99/os.py", "lib/python3.99/EXTERNALLY-MANAGED"},
			"pip", PyPI,
			"pip install --break-system-packages --upgrade toolcell", "pip uninstall --break-system-packages toolcell", true,
		},
		"another package of Python": {
			"HOME/.local/bin/toolcell",
			[]string{"lib/python3.99/site-packages/tool-1.dist-info/METADATA"},
			"source", GitHub,
			"# in a clone:\ngit pull && make && make install PREFIX=HOME/.local", "rm HOME/.local/bin/toolcell", true,
		},
		"npx": {
			"HOME/.npm/_npx/1a2b/node_modules/@toolcell/linux-x64/bin/toolcell", nil, "npx", NPM,
			"rm -rf HOME/.npm/_npx/1a2b && npx toolcell upgrade", "rm -r HOME/.npm/_npx/1a2b", false,
		},
		"npm for all": {
			"/usr/local/lib/node_modules/toolcell/node_modules/@toolcell/linux-x64/bin/toolcell", nil, "npm", NPM,
			"npm install -g toolcell@latest && toolcell upgrade", "npm uninstall -g toolcell", false,
		},
		"npm in a project": {
			"HOME/p/node_modules/@toolcell/linux-arm64/bin/toolcell", nil, "npm", NPM,
			"npm install --prefix HOME/p toolcell@latest && npm exec --prefix HOME/p toolcell upgrade", "npm uninstall --prefix HOME/p toolcell", false,
		},
		"go install": {
			"HOME/go/bin/toolcell", nil, "go install", GitHub,
			"CGO_ENABLED=1 go install -tags seccomp,netgo,osusergo,runc_nocriu,urfave_cli_no_docs github.com/toolcell/toolcell/cmd/toolcell@latest",
			"rm HOME/go/bin/toolcell", true,
		},
		"make": {
			"HOME/a clone/bin/toolcell",
			[]string{".git/config"},
			"source", GitHub,
			"cd 'HOME/a clone' && git pull && make && bin/toolcell upgrade", "rm 'HOME/a clone/bin/toolcell'", false,
		},
		"make, moved": {
			"HOME/elsewhere/toolcell", nil, "source", GitHub,
			"# in a clone:\ngit pull && make && bin/toolcell upgrade", "rm HOME/elsewhere/toolcell", false,
		},
		"make install": {
			"/opt/toolcell/bin/toolcell", nil, "source", GitHub,
			"# in a clone:\ngit pull && make && make install PREFIX=/opt/toolcell", "rm /opt/toolcell/bin/toolcell", true,
		},
		"a tarball": {
			"HOME/.local/bin/toolcell",
			[]string{"share/doc/toolcell/copyright"},
			"a tarball", GitHub,
			"# where the tarball from " + releases + " is:\ntar -C HOME/.local --strip-components=1 -xzf " + newest, "rm HOME/.local/bin/toolcell", true,
		},
		"a tarball for a while": {
			"HOME/x/bin/toolcell",
			[]string{"share/doc/toolcell/copyright"},
			"a tarball", GitHub,
			"# where the tarball from " + releases + " is:\ntar -C HOME/x --strip-components=1 -xzf " + newest + " && HOME/x/bin/toolcell upgrade",
			"rm HOME/x/bin/toolcell", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			home := home(t)
			in := func(text string) string { return strings.ReplaceAll(text, "HOME", home) }
			path := in(c.path)
			for _, file := range c.around {
				put(t, filepath.Join(filepath.Dir(filepath.Dir(path)), file), "")
			}
			p := at(path)
			want := Origin{Name: c.from, Registry: c.in, Upgrade: in(c.upgrade), Remove: in(c.remove), passing: p.Origin.passing, stays: p.Origin.stays}
			if p.Origin != want {
				t.Errorf("got  %+v\nwant %+v", p.Origin, want)
			}
			started := filepath.Join(home, ".local/share/toolcell/bin/toolcell")
			if c.lasting {
				started = path
			}
			if got := p.Started(); got != started {
				t.Errorf("clients start %s, want %s", got, started)
			}
		})
	}
}

// TestTheFirstStandardLibraryTells whether pip needs a flag: that of a Python in /usr/local is before
// that of the system, and a user's folder has none.
func TestTheFirstStandardLibraryTells(t *testing.T) {
	dir := t.TempDir()
	for _, file := range []string{"own/python3.13/os.py", "system/python3.13/os.py", "system/python3.13/EXTERNALLY-MANAGED", "user/python3.13/site-packages/x"} {
		put(t, filepath.Join(dir, file), "")
	}
	for _, c := range []struct {
		first, python string
		want          bool
	}{
		{"own", "python3.13", false},
		{"user", "python3.13", true},
		{"none", "python3.13", true},
		{"user", "python3.12", false},
	} {
		if got := externallyManaged(c.python, filepath.Join(dir, c.first), filepath.Join(dir, "system")); got != c.want {
			t.Errorf("%s beside the library in %s: %t, want %t", c.python, c.first, got, c.want)
		}
	}
}

// TestTheNewestTarballIsUnpacked where older ones were downloaded too, as upgrade says.
func TestTheNewestTarballIsUnpacked(t *testing.T) {
	prefix, downloads := home(t), t.TempDir()
	put(t, filepath.Join(prefix, "share/doc/toolcell/copyright"), "")
	for _, version := range []string{"0.9.0", "0.10.0"} {
		top := "toolcell-" + version + "-linux-" + runtime.GOARCH
		put(t, filepath.Join(downloads, top, "bin/toolcell"), version)
		if out, err := exec.Command("tar", "-C", downloads, "-czf", filepath.Join(downloads, top+".tar.gz"), top).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	path := filepath.Join(prefix, "bin/toolcell")
	cmd := exec.Command("sh", "-ec", at(path).Origin.Upgrade)
	cmd.Dir = downloads
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got, err := os.ReadFile(path); string(got) != "0.10.0" {
		t.Errorf("what is unpacked is %q, %v", got, err)
	}
}

// TestANameInPathIsPreferred: what packages install is a link, whose target they replace. One
// that leads elsewhere, and one of an environment, are not taken.
func TestANameInPathIsPreferred(t *testing.T) {
	home := home(t)
	link := filepath.Join(home, "links", "toolcell")
	for name, c := range map[string]struct {
		path string
		want string
	}{
		"a package's":       {put(t, filepath.Join(home, "store/1/bin/toolcell"), "x"), link},
		"an environment's":  {put(t, filepath.Join(home, "venv/bin/toolcell"), "x"), ""},
		"of another folder": {put(t, filepath.Join(home, "there/toolcell"), "x"), ""},
	} {
		target := c.path
		if name == "of another folder" {
			target = put(t, filepath.Join(home, "elsewhere/toolcell"), "x")
		}
		put(t, filepath.Join(home, "venv/pyvenv.cfg"), "")
		put(t, filepath.Join(home, "venv/lib/python3.13/site-packages/toolcell-1.dist-info/METADATA"), "")
		_ = os.RemoveAll(filepath.Dir(link))
		if err := errors.Join(os.MkdirAll(filepath.Dir(link), 0o755), os.Symlink(target, link)); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", filepath.Dir(link))
		if got := at(c.path).Lasting(); got != c.want {
			t.Errorf("%s: %q lasts, want %q", name, got, c.want)
		}
	}
}

func TestStablePathFollowsXDG(t *testing.T) {
	home := home(t)
	for data, want := range map[string]string{
		"":         home + "/.local/share/toolcell/bin/toolcell",
		"/data":    "/data/toolcell/bin/toolcell",
		"relative": home + "/.local/share/toolcell/bin/toolcell",
	} {
		t.Setenv("XDG_DATA_HOME", data)
		if got := StablePath(); got != want {
			t.Errorf("with XDG_DATA_HOME=%s it is %s, want %s", data, got, want)
		}
	}
	t.Setenv("XDG_DATA_HOME", "")
	t.Setenv("HOME", "")
	if got := StablePath(); got != "" {
		t.Errorf("without a home it is %s", got)
	}
}

// TestACopyKeepsItsOrigin, which only the file beside it can tell.
func TestACopyKeepsItsOrigin(t *testing.T) {
	home(t)
	path := StablePath()
	for text, want := range map[string]Origin{
		`{"name": "uvx", "registry": "PyPI", "upgrade": "uvx toolcell@latest upgrade"}`: {Name: "uvx", Registry: PyPI, Upgrade: "uvx toolcell@latest upgrade"},
		`{"name": `: {Name: "a copy", Registry: GitHub, Upgrade: "# with the new program, of whatever kind:\ntoolcell upgrade"},
	} {
		put(t, originFile(), text)
		if got := at(path); got.Origin != want || got.Lasting() != path {
			t.Errorf("%s: got %+v", text, got)
		}
	}
}
