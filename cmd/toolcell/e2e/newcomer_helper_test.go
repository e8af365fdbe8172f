package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A newcomer is a user with a home folder in which toolcell has never been.
type newcomer struct {
	*host
	env env
}

func newNewcomer(t *testing.T, h *host) *newcomer {
	t.Helper()
	dir, err := os.MkdirTemp(shared, "newcomer-")
	if err != nil {
		t.Fatal(err)
	}
	n := &newcomer{host: new(host), env: env{"TOOLCELL_STATE_DIR": "", "TOOLCELL_IMAGE": "host", "NO_COLOR": "1"}}
	*n.host = *h
	n.home = dir
	n.give(t, dir)
	n.put(t, ".cursor/mcp.json", `{"mcpServers": {"jira": {"command": "jira-mcp"}}}`)
	n.put(t, "letter.txt", "mine")
	t.Cleanup(func() { _ = exec.Command("chmod", "-R", "u+rwx", dir).Run() })
	return n
}

// give gives a file to the user.
func (n *newcomer) give(t *testing.T, path string) {
	t.Helper()
	if n.cred != nil {
		if err := os.Lchown(path, int(n.cred.Uid), int(n.cred.Gid)); err != nil {
			t.Fatal(err)
		}
	}
}

// put writes a file of the user, below the home folder.
func (n *newcomer) put(t *testing.T, name, text string) string {
	t.Helper()
	dir := n.home
	for part := range strings.SplitSeq(filepath.Dir(name), "/") {
		dir = filepath.Join(dir, part)
		if err := os.Mkdir(dir, 0o755); err == nil {
			n.give(t, dir)
		}
	}
	path := filepath.Join(n.home, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	n.give(t, path)
	return path
}

func (n *newcomer) link(t *testing.T, to, name string) {
	t.Helper()
	if err := os.Symlink(to, filepath.Join(n.home, name)); err != nil {
		t.Fatal(err)
	}
	n.give(t, filepath.Join(n.home, name))
}

// find lists all files below the home folder with their content, as find does.
func (n *newcomer) find(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(n.home, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		text := d.Type().String()
		if d.Type().IsRegular() {
			text = read(t, path)
		}
		all[strings.TrimPrefix(path, n.home)] = text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// wantFiles fails the test unless there are just these files.
func (n *newcomer) wantFiles(t *testing.T, want map[string]string) {
	t.Helper()
	if got := n.find(t); !maps.Equal(got, want) {
		differs := func(name string) bool { a, in := got[name]; b, also := want[name]; return in != also || a != b }
		names := slices.DeleteFunc(slices.Sorted(maps.Keys(got)), func(name string) bool { return !differs(name) })
		missing := slices.DeleteFunc(slices.Sorted(maps.Keys(want)), func(name string) bool { return !differs(name) })
		t.Errorf("there are %q, other than they were\nwanted %q", names, missing)
	}
}

// must runs the binary, which has to exit with this code and print this, on either stream.
func (n *newcomer) must(t *testing.T, code int, want string, args ...string) string {
	t.Helper()
	out, errs, got := n.run(t, n.env, args...)
	if got != code || !strings.Contains(out+errs, want) {
		t.Errorf("%q: exit %d, want %d and %q\n%s%s", args, got, code, want, out, errs)
	}
	return out + errs
}

// use uses toolcell for what leaves files of most kinds.
func (n *newcomer) use(t *testing.T) {
	t.Helper()
	n.put(t, ".config/toolcell/policy.toml", "")
	n.must(t, 0, "added to Cursor", "install", "cursor", "--move-servers", "--yes")
	n.must(t, 0, "", "exec", "-q", "-c", "open('/workspace/out/x.txt', 'w').write('x')\nfrom mcp import runtime\ndef kept(): pass\nruntime.save_tool(kept)")
}

// A diskUse is one of status --json.
type diskUse struct {
	Kind         string
	Bytes, Count int64
	Folders      []string
}

func (n *newcomer) disk(t *testing.T) (all map[string]diskUse, total int64) {
	t.Helper()
	var rows []struct {
		Disk  []diskUse
		Bytes int64
		Notes []string
	}
	out, errs, code := n.run(t, n.env, "status", "--json")
	if err := json.Unmarshal([]byte(out), &rows); err != nil || code != 0 || len(rows) != 1 || len(rows[0].Notes) > 0 {
		t.Fatalf("exit %d, %v\n%s%s", code, err, out, errs)
	}
	all = map[string]diskUse{}
	for _, u := range rows[0].Disk {
		all[u.Kind] = u
	}
	return all, rows[0].Bytes
}

// du is what du says of all of toolcell's folders: those in the home folder, and the one of IDs.
func (n *newcomer) du(t *testing.T, disk map[string]diskUse) (sum int64) {
	t.Helper()
	for _, dir := range []string{".cache/toolcell", ".local/state/toolcell", ".config/toolcell", ".local/share/toolcell"} {
		sum += du(t, filepath.Join(n.home, dir))
	}
	for _, folder := range disk["other"].Folders {
		if !strings.HasPrefix(folder, n.home) {
			sum += du(t, folder)
		}
	}
	return sum
}

// du is what du says of folders, in bytes. It fails if a file goes while it looks, as those do that a
// run has work on in the background, and is then asked again.
func du(t *testing.T, dirs ...string) (sum int64) {
	t.Helper()
	for _, dir := range dirs {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) { // such as that of a copy of the program, which not all need
			continue
		}
		var out []byte
		for start := time.Now(); ; time.Sleep(100 * time.Millisecond) {
			var err error
			var errs bytes.Buffer
			cmd := exec.Command("du", "-s", "--block-size=1", dir)
			cmd.Stderr = &errs
			if out, err = cmd.Output(); err == nil {
				break
			}
			if time.Since(start) > slow(10*time.Second) {
				t.Fatalf("%v: %s", err, errs.Bytes())
			}
		}
		n, err := strconv.ParseInt(strings.Fields(string(out))[0], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	return sum
}
