package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/rootfs/rootfstest"
)

// shells are the shells with completion, and how each loads it. The tests of a
// missing shell are skipped.
var shells = map[string]struct {
	start []string
	ready string // what makes the completion, and the prompt, ready
}{
	"bash": {[]string{"--norc", "--noprofile", "-i"}, "PS1='ready> '; source <(toolcell completion bash)"},
	"zsh":  {[]string{"-f", "-i"}, "PS1='ready> '; autoload -Uz compinit; compinit -u -D; source <(toolcell completion zsh)"},
	"fish": {nil, ""},
}

func withShell(t *testing.T, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("needs %s: apt-get install %s", name, name)
	}
}

// completionCases are what is typed before the Tab, and the words that the line
// then has: the one that can follow, or what several have in common.
var completionCases = []struct {
	name, typed string
	want        []string
}{
	{"command", "doc", []string{"doctor"}},
	{"command of a command", "images li", []string{"images", "list"}},
	{"flag", "exec --time", []string{"exec", "--timeout"}},
	{"flag of a command of a command", "servers list --js", []string{"servers", "list", "--json"}},
	{"value of a flag", "exec --output to", []string{"exec", "--output", "toon"}},
	{"value behind =", "exec --output=to", []string{"exec", "--output=toon"}},
	{"server", "servers tools git", []string{"servers", "tools", "github"}},
	{"second server", "servers check github ji", []string{"servers", "check", "github", "jira"}},
	{"server of a run", "exec --server git", []string{"exec", "--server", "github"}},
	{"server with a space", "servers tools My", []string{"servers", "tools", "My Server"}},
	{"input of a server", "servers set weather TO", []string{"servers", "set", "weather", "TOKEN"}},
	{"server to set", "servers set we", []string{"servers", "set", "weather"}},
	{"image", "images inspect oci:" + "{images}/py", []string{"images", "inspect", "oci:{images}/python-{version}"}},
	{"image behind =", "exec --image=oci:{images}/py", []string{"exec", "--image=oci:{images}/python-{version}"}},
	{"file", "exec {shared}/comple", []string{"exec", "{shared}/completed.py"}},
	{"file for the code", "exec x.py -- {shared}/comple", []string{"exec", "x.py", "--", "{shared}/completed.py"}},
	{"saved tool", "tools show comp", []string{"tools", "show", "completed_tool"}},
	{"client", "install claude-c", []string{"install", "claude-code"}},
	{"shell", "completion ba", []string{"completion", "bash"}},
	{"topic of help", "help sett", []string{"help", "settings"}},
}

// completionHost has servers, an image and a file to complete.
func completionHost(t *testing.T) (h *host, e env, fill func(string) string) {
	t.Helper()
	h = firstHost(t)
	_, version := pythons()
	ref := "oci:" + rootfstest.Layout(t, version)
	e = h.ownState(t)
	h.must(t, e, "images", "pull", "--no-compile", ref)
	h.must(t, e, "exec", "--image", "host", "-c", "from mcp import runtime\ndef completed_tool(): pass\nruntime.save_tool(completed_tool)\nNone")
	e["TOOLCELL_SERVERS_CONFIG"] = writeConfig(t, map[string]any{"mcpServers": map[string]any{
		"github":    map[string]any{"command": "x"},
		"weather":   map[string]any{"command": "x", "env": map[string]string{"TOKEN": "${TOKEN}"}},
		"jira":      map[string]any{"command": "x"},
		"My Server": map[string]any{"command": "x"},
	}})
	if err := os.WriteFile(filepath.Join(shared, "completed.py"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	images, _ := filepath.Split(strings.TrimPrefix(ref, "oci:"))
	fill = strings.NewReplacer("{images}", strings.TrimSuffix(images, "/"), "{version}", version, "{shared}", shared).Replace
	e["PATH"] = filepath.Dir(bin) + ":" + os.Getenv("PATH")
	return h, e, fill
}

func TestCompletionInTheShellsThemselves(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"bash", "zsh"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withShell(t, name)
			h, e, fill := completionHost(t)
			for _, tt := range completionCases {
				t.Run(tt.name, func(t *testing.T) {
					c := h.command(t, e)
					path, _ := exec.LookPath(name)
					c.Path, c.Args = path, append([]string{name}, shells[name].start...)
					c.Env = append(c.Env, "TERM=dumb", "PATH="+e["PATH"])
					p := atTerminal(t, c, 400)
					p.enters(shells[name].ready+"\n", "ready> ")
					// The completed line becomes the arguments of printf: its words
					// are seen as the shell reads them.
					p.types("toolcell " + fill(tt.typed) + "\t\x01printf '<%s>' \n")
					want := "<toolcell>"
					for _, w := range tt.want {
						want += "<" + fill(w) + ">"
					}
					p.sees(want)
				})
			}
		})
	}
}

// TestCompletionInFish asks fish for what it would offer.
func TestCompletionInFish(t *testing.T) {
	t.Parallel()
	withShell(t, "fish")
	h, e, fill := completionHost(t)
	for _, tt := range completionCases {
		c := h.command(t, e)
		path, _ := exec.LookPath("fish")
		c.Path, c.Args = path, []string{"fish", "--no-config", "-c", fmt.Sprintf("toolcell completion fish | source; complete -C 'toolcell %s'", fill(tt.typed))}
		c.Env = append(c.Env, "PATH="+e["PATH"])
		out, err := c.CombinedOutput()
		var offered []string
		for line := range strings.Lines(string(out)) {
			word, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
			offered = append(offered, word)
		}
		if want := fill(tt.want[len(tt.want)-1]); err != nil || !slices.Equal(offered, []string{want}) {
			t.Errorf("%s: %v, %q, want %q", tt.name, err, offered, want)
		}
	}
}
