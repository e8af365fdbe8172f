package doctor

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/oci/host"
)

// elsewhereLines are what a comment in a cure says when the lines below it are no
// commands for this host: flags of a container, and lines of files.
var elsewhereLines = regexp.MustCompile(`^# (start the container with|in the pod|limit the container as a whole, in the pod|put this in|start the machine with this|in PowerShell|then in PowerShell)`)

// commandsOf returns the lines of a cure that are typed on this host, or on the one
// that this container runs on.
func commandsOf(cure string) string {
	var out []string
	typed := true
	for line := range strings.Lines(cure) {
		if strings.HasPrefix(line, "#") {
			typed = !elsewhereLines.MatchString(line)
		}
		if typed {
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
}

// programsInCures are all that a cure may start.
var programsInCures = []string{
	"apk", "apparmor_parser", "apt-get", "ausearch", "chmod", "chown", "df", "dnf", "echo", "export", "grubby", "loginctl", "mkdir", "pacman",
	"printf", "sysctl", "systemctl", "tee", "timeout", "ulimit", "update-grub", "usermod", "zypper", "/home/ann/.local/bin/toolcell",
}

// TestCuresCanBeTyped: a shell takes each cure as it is, without a word that the user
// would have to replace.
func TestCuresCanBeTyped(t *testing.T) {
	placeholder := regexp.MustCompile(`…|/path/|<[a-z]|\b(FILE|DIR|USER|NAME)\b`)
	command := regexp.MustCompile(`(?:^|\n|&& |\| )(?:sudo |doas )?([^\s#]+)`)
	hereDocument := regexp.MustCompile(`(?s)<<'EOF'\n.*?\nEOF`)
	seen := map[string]bool{}
	for name, h := range fakeHosts {
		for _, c := range h.facts().examine() {
			commands := commandsOf(c.Cure)
			if commands == "" || seen[commands] {
				continue
			}
			seen[commands] = true
			withoutHere := hereDocument.ReplaceAllString(commands, "")
			if m := placeholder.FindString(withoutHere); m != "" {
				t.Errorf("%s: %s has the placeholder %q:\n%s", name, c.Code, m, commands)
			}
			if out, err := exec.Command("/bin/sh", "-n", "-c", commands).CombinedOutput(); err != nil {
				t.Errorf("%s: %s: %s\n%s", name, c.Code, out, commands)
			}
			for _, m := range command.FindAllStringSubmatch(withoutHere, -1) {
				if !slices.Contains(programsInCures, m[1]) {
					t.Errorf("%s: %s starts %q:\n%s", name, c.Code, m[1], commands)
				}
			}
		}
	}
	if len(seen) < 20 {
		t.Errorf("only %d cures", len(seen))
	}
}

// TestFolderCuresWork: they are typed in a shell, and the folder is then as it has to
// be, also when they are typed once more.
func TestFolderCuresWork(t *testing.T) {
	dir := t.TempDir() + "/it's a folder"
	f := fakeHost{}.facts()
	script := elsewhere(f, dir, 0o700) + ` && test -d "$TOOLCELL_STATE_DIR" && chmod go-w ` + text.ShellWord(dir) + " && df -h " + text.ShellWord(dir)
	if out, err := exec.Command("/bin/sh", "-c", script).CombinedOutput(); err != nil {
		t.Errorf("%v: %s\n%s", err, out, script)
	}
	f.System, f.host.EUID = host.ThisSystem(), os.Geteuid()
	if got := elsewhere(f, dir, 0o700); strings.Contains(got, "mkdir") {
		t.Errorf("a folder that is there and ours is made again: %s", got)
	}
}
