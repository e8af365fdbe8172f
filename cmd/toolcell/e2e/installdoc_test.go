package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestInstallDocument runs what docs/install.md tells people to type, block by
// block, in a home of its own.
func TestInstallDocument(t *testing.T) {
	goEnv := goEnvironment(t)
	w := newWorkshop(t)
	w.put(t, "home/.cursor/mcp.json", cursorFile)
	bins := filepath.Join(w.home, ".local/bin")
	ran := 0
	blocks, err := docBlocks(read(t, "../../../docs/install.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range blocks {
		if block.lang != "sh" || block.mark == "not run" {
			continue
		}
		c := exec.Command("bash", "-euo", "pipefail", "-c", block.text)
		if c.Dir = w.project; strings.HasPrefix(block.text, "make") || strings.Contains(block.text, "go install") {
			c.Dir = "../../.."
		}
		c.Env = append(slices.Clip(goEnv), "HOME="+w.home, "PATH="+bins+":"+os.Getenv("PATH"), "TOOLCELL_STATE_DIR="+w.env["TOOLCELL_STATE_DIR"])
		out, err := c.CombinedOutput()
		if code := c.ProcessState.ExitCode(); code != 0 && !(block.mark == "exit" && slices.Contains(strings.Split(block.arg, " or "), fmt.Sprint(code))) {
			t.Fatalf("%s\n%v\n%s", block.text, err, out)
		}
		ran++
	}
	if ran < 7 {
		t.Errorf("only %d blocks were run", ran)
	}
	for _, file := range []string{".local/bin/toolcell", ".local/share/bash-completion/completions/toolcell", ".local/share/man/man1/toolcell.1.gz", "go/bin/toolcell"} {
		if info, err := os.Stat(filepath.Join(w.home, file)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", file, err)
		}
	}
	if got := read(t, filepath.Join(w.home, ".cursor/mcp.json")); !strings.Contains(got, "jira") || strings.Contains(got, `"toolcell"`) {
		t.Errorf("after all of it Cursor's file is\n%s", got)
	}
}

// goEnvironment is what building needs when HOME is another's, and skips where
// there is no Go.
func goEnvironment(t *testing.T) []string {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("needs the go command, and the source")
	}
	var all []string
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH", "GOPROXY", "GOFLAGS", "GONOSUMDB", "GOTOOLCHAIN"} {
		out, err := exec.Command("go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		if v := strings.TrimSpace(string(out)); v != "" && name != "GOPATH" {
			all = append(all, name+"="+v)
		}
	}
	return all
}
