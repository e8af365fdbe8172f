package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// script is code whose header names packages.
func script(code string, packages ...string) string {
	return "# /// script\n# requires-python = '>=3.9'\n# dependencies = ['" + strings.Join(packages, "', '") + "']\n# ///\n" + code
}

// needPyPI skips a test where the default index cannot be reached. In CI it can.
func needPyPI(t *testing.T) {
	t.Helper()
	client := http.Client{Timeout: slow(20 * time.Second)}
	resp, err := client.Get("https://pypi.org/simple/six/")
	if err != nil {
		t.Skipf("needs PyPI: %v", err)
	}
	resp.Body.Close()
}

// pythonImages are the images with a Python that tests have, and the host's.
func pythonImages() []string {
	images := []string{"host"}
	if dir := os.Getenv("TOOLCELL_TEST_IMAGES"); dir != "" {
		versions := strings.Fields(os.Getenv("TOOLCELL_TEST_PYTHONS"))
		if len(versions) == 0 {
			versions = []string{"3.11", "3.13", "3.14"}
		}
		for _, v := range versions {
			images = append(images, fmt.Sprintf("oci:%s/python-%s", dir, v))
		}
	}
	return images
}

// TestPackagesOfAScript come from the real index, on every Python.
func TestPackagesOfAScript(t *testing.T) {
	t.Parallel()
	needPyPI(t)
	for _, image := range pythonImages() {
		t.Run(filepath.Base(image), func(t *testing.T) {
			t.Parallel()
			inEveryWay(t, onFirstHost, func(t *testing.T, h *host) {
				c := h.serve(t, env{"TOOLCELL_IMAGE": image})
				const code = "import six, httpx, sys, subprocess, importlib.metadata as m\n" +
					"print(m.version('six') == six.__version__, httpx.__file__, 'six' in m.packages_distributions()['six'] if hasattr(m, 'packages_distributions') else True)\n" +
					"at = sys.path.index('/run/toolcell/packages')\n" +
					"print(any('lib-dynload' in p for p in sys.path[:at]), any('-packages' in p for p in sys.path[:at]))\n" +
					"print(subprocess.run([sys.executable, '-c', 'import six; print(six.__file__)'], capture_output=True, text=True).stdout, end='')\n" +
					"try: open('/run/toolcell/packages/x', 'w')\nexcept OSError as e: print(e.strerror)"
				const want = "True /run/toolcell/packages/httpx/__init__.py True\nTrue False\n/run/toolcell/packages/six.py\nRead-only file system"
				for range 2 {
					c.python(t, script(code, "six", "httpx>=0.27")).want(t, want)
				}
				c.python(t, "import os; print(os.path.exists('/run/toolcell/packages'))").want(t, "False")
				c.in(t, "s", script("import six", "six")).want(t, "Success (no output)")
				c.in(t, "s", "print(six.__name__)").want(t, "six")
				if r := c.in(t, "s", script("1", "six", "idna")); r.status() != "validation_error" || !strings.Contains(r.text, "idna cannot be added") {
					t.Errorf("more in a session: %s", r.text)
				}
			})
		})
	}
}

// TestPackagesThatCannotBe says in a sentence why.
func TestPackagesThatCannotBe(t *testing.T) {
	t.Parallel()
	needPyPI(t)
	h := firstHost(t)
	dir, write := policyFolder(t)
	c := h.serve(t, env{"TOOLCELL_IMAGE": "host", "XDG_CONFIG_HOME": dir})
	for _, tt := range []struct{ policy, packages, status, want string }{
		{"", "toolcell-there-is-no-such-package", "validation_error", `there is no package "toolcell-there-is-no-such-package" in the index https://pypi.org/simple`},
		{"", "six==99", "validation_error", "there is no version of six==99"},
		{"", "docopt", "validation_error", "docopt has no wheel for the Python of this image"},
		{"", "httpx==0.28.1', 'httpcore<1", "validation_error", "no versions go together for "},
		{"", "six @ https://example.org/six.whl", "validation_error", "after @"},
		{`allow = ["idna"]`, "six", "validation_error", `policy.toml: the package "six" is not allowed: add it to [packages] allow`},
		{`deny = ["h11"]`, "httpx>=0.27", "validation_error", `the package "h11`},
		{`maxCount = 2`, "httpx>=0.27", "validation_error", "[packages] maxCount"},
		{`maxBytes = 1000`, "idna", "validation_error", "[packages] maxBytes"},
		{`excludeNewer = "3650 days"`, "httpx", "validation_error", "[packages] excludeNewer"},
		{`files = "example.org"`, "idna", "sandbox_error", "[packages] files"},
		{`index = "https://toolcell.invalid/simple"`, "six", "sandbox_error", "the package index https://toolcell.invalid/simple cannot be reached"},
	} {
		text := ""
		if tt.policy != "" {
			text = "[packages]\n" + tt.policy
		}
		write(text)
		if r := c.python(t, script("print('ran')", tt.packages)); r.status() != tt.status || !strings.Contains(r.text, tt.want) || len(r.text) > 1000 {
			t.Errorf("%s, %s:\n got %s\nwant %s", tt.policy, tt.packages, r.text, tt.want)
		}
	}
	write("[packages]\nallow = ['idna<3.5']")
	c.python(t, script("import idna; print(idna.__version__)", "idna")).want(t, "3.4")
	if r := c.python(t, "# /// script\n# requires-python = '>=3.99'\n# ///\nprint(1)"); r.status() != "validation_error" || !strings.Contains(r.text, "requires Python >=3.99") {
		t.Errorf("another Python: %s", r.text)
	}
}

// TestPackagesCommands get packages ahead, and list, lock and remove them.
func TestPackagesCommands(t *testing.T) {
	t.Parallel()
	needPyPI(t)
	h := firstHost(t)
	e := env{"TOOLCELL_IMAGE": "host", "TOOLCELL_STATE_DIR": filepath.Join(h.home, "packages-state")}
	file := filepath.Join(h.home, "report.py")
	if err := os.WriteFile(file, []byte(script("import six; print(six.__version__)", "six<1.17")), 0o644); err != nil {
		t.Fatal(err)
	}
	run := func(e env, want string, args ...string) string {
		t.Helper()
		out, errs, code := h.run(t, e, args...)
		if !strings.Contains(out+errs, want) {
			t.Errorf("%s: status %d\n%s%s\nwant %s", args, code, out, errs, want)
		}
		return out
	}
	const add = "fetch them with: toolcell packages add --image host "
	run(e, "the packages for six<1.17 are not here, and nothing may be fetched", "packages", "add", "--offline", "six<1.17")
	run(e, add+"'six<1.17'\n", "packages", "add", "--offline", "six<1.17")
	run(e, add+"'six<1.17'\n", "packages", "lock", "--offline", file)
	run(e, add+file+"\n", "exec", "-q", "--offline", file)
	run(e.with("TOOLCELL_PULL", "never"), add+"idna", "exec", "-q", "-c", script("import idna", "idna"))
	id, _, _ := strings.Cut(run(e, ": six 1.16.0\n", "packages", "add", "six<1.17"), ":")
	run(e, "six 1.16.0", "packages", "add", "--offline", "six<1.17")
	// What is here needs no network.
	offline := e.with("HTTPS_PROXY", "http://127.0.0.1:1")
	run(offline, "1.16.0\n", "exec", file)
	run(offline, "1.16.0\n", "exec", "--offline", file)
	run(offline, "pylock.report.toml", "packages", "lock", "--offline", file)
	if err := os.Remove(filepath.Join(h.home, "pylock.report.toml")); err != nil {
		t.Fatal(err)
	}
	run(offline, "cannot be reached", "exec", "-c", script("import idna", "idna"))
	run(offline, "ahead with: toolcell packages add --image host idna", "exec", "-c", script("import idna", "idna"))
	var sets []struct {
		ID, Image string
		Packages  []struct{ Name, Version, SHA256 string }
		Bytes     int64
		LastUsed  time.Time
	}
	if err := json.Unmarshal([]byte(run(e, "", "packages", "list", "--json")), &sets); err != nil || len(sets) != 1 {
		t.Fatalf("%+v, %v", sets, err)
	}
	if s := sets[0]; s.Image != "host" || s.Packages[0].Version != "1.16.0" || len(s.Packages[0].SHA256) != 64 || s.Bytes == 0 || time.Since(s.LastUsed) > time.Hour {
		t.Errorf("got %+v", s)
	}
	run(e, "six 1.16.0 sha256:", "packages", "show", id)
	run(e, "there is no set of packages", "packages", "show", "none")
	run(e, "pylock.report.toml", "packages", "lock", file)
	run(e, "1.16.0\n", "exec", file)
	lock := filepath.Join(h.home, "pylock.report.toml")
	text, err := os.ReadFile(lock)
	if err == nil {
		err = os.WriteFile(lock, bytes.ReplaceAll(text, []byte(`"1.16.0"`), []byte(`"1.15.0"`)), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	run(e, "the lock beside the script does not have six 1.15.0 with the wheel that this image needs; write it again with: toolcell packages lock --image host "+file, "exec", file)
	// What exec refuses with 2, these do too.
	refused := filepath.Join(h.home, "refused.py")
	if err := os.WriteFile(refused, []byte("# /// script\n# requires-python = '>=3.99'\n# dependencies = ['six']\n# ///\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"packages", "add", "toolcell-there-is-no-such-package"},
		{"exec", refused},
		{"packages", "add", refused},
		{"packages", "lock", refused},
		{"packages", "add", "six", refused},
	} {
		if out, errs, code := h.run(t, e, args...); code != 2 {
			t.Errorf("%s: status %d\n%s%s", args, code, out, errs)
		}
	}
	run(e, "this host has 3.", "packages", "add", refused)
	run(e, "--image can name another image", "packages", "add", refused)
	run(e, "give one script, or requirements", "packages", "add", "six", refused)
	run(e, "nothing to remove", "packages", "prune")
	run(e, "removed 1 set, freed", "packages", "prune", "--unused", "0")
}
