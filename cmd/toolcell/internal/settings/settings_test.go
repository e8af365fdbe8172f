package settings

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/toolcell/toolcell/bridge/imaging"
	"github.com/toolcell/toolcell/rootfs"
)

// TestSettingsDocumentHasAllSettings compares the tables of docs/settings.md
// with the settings: names and defaults.
func TestSettingsDocumentHasAllSettings(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| `?([^|`]+?)`? \\| ")
	rows := map[string]string{}
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		rows[m[1]] = m[2]
	}
	for _, k := range All {
		value, ok := rows[k.Name]
		switch {
		case !ok:
			t.Errorf("docs/settings.md has no row of %s", k.Name)
		case k.Value != "" && value != k.Value:
			t.Errorf("docs/settings.md says that the default of %s is %s; it is %s", k.Name, value, k.Value)
		}
		delete(rows, k.Name)
	}
	for name := range rows {
		t.Errorf("docs/settings.md has a row of %s, which is no setting", name)
	}
}

// TestEnvironmentIsChecked, also the variables that are no flags of a command.
func TestEnvironmentIsChecked(t *testing.T) {
	var s Settings // of a command without flags
	if err := s.CheckAll(); err != nil {
		t.Fatalf("with nothing set: %v", err)
	}
	for _, tt := range []struct{ name, value, want string }{
		{"TOOLCELL_PICTURES", "many", `setting TOOLCELL_PICTURES: "many" is not a whole number`},
		{"TOOLCELL_PICTURES", "40000", `setting TOOLCELL_PICTURES: "40000" is not a whole number from 0 to 32767`},
		{"TOOLCELL_PIDS", "3", `setting TOOLCELL_PIDS: "3" is not a whole number of at least 4`},
		{"TOOLCELL_MOUNTS", "/no/such/folder:data", `setting TOOLCELL_MOUNTS: "data" is relative`},
		{"TOOLCELL_CPUS", "NaN", `setting TOOLCELL_CPUS: "NaN" is not a number of processors`},
		{"TOOLCELL_MEMORY", "NaN", `setting TOOLCELL_MEMORY: "NaN" is not a size`},
		{"TOOLCELL_TIMEOUT", "NaN", `setting TOOLCELL_TIMEOUT: "NaN" is not a time`},
		{"TOOLCELL_OUTPUT_BYTES", "5", `setting TOOLCELL_OUTPUT_BYTES: "5" is not a size from 1k to 1m`},
		{"TOOLCELL_OUTPUT_BYTES", "5x", `setting TOOLCELL_OUTPUT_BYTES: "5x" is not a size; write a number`},
		{"TOOLCELL_OUTPUT", "xml", `setting TOOLCELL_OUTPUT: "xml" is none of compact, toon, json`},
		{"TOOLCELL_PLATFORM", "linux", `setting TOOLCELL_PLATFORM: "linux" is not OS/ARCH[/VARIANT]`},
		{"TOOLCELL_REGISTRY_MIRRORS", "=", "setting TOOLCELL_REGISTRY_MIRRORS: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv(tt.name, tt.value)
			if err := s.CheckAll(); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
}

// TestSettingsAreReadAsPeopleWriteThem: words in any case, values in quotes as configs of
// clients have them, and what is set to nothing is not set.
func TestSettingsAreReadAsPeopleWriteThem(t *testing.T) {
	t.Setenv("TOOLCELL_OUTPUT", `" TOON "`)
	t.Setenv("TOOLCELL_PULL", "Never")
	t.Setenv("TOOLCELL_TIMEOUT", ` "90" `)
	t.Setenv("TOOLCELL_PICTURES", "0")
	t.Setenv("TOOLCELL_IMAGE", "")
	t.Setenv("TOOLCELL_INSECURE_REGISTRIES", "a:5000, b")
	t.Setenv("TOOLCELL_REGISTRY_MIRRORS", "docker.io=http://mirror.example")
	var s Settings
	app := &cli.App{Flags: Flags(), Action: func(c *cli.Context) (err error) { s, err = Read(c); return err }}
	if err := app.Run([]string{"toolcell"}); err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(s.Bridge.Output, s.Pull, s.Runs.Timeout, s.Runs.Pictures.Count, s.Image, s.ImageNamed, s.Puller.PlainHTTP)
	if want := fmt.Sprint("toon", rootfs.PullNever, 90*time.Second, imaging.None, DefaultImage, false, []string{"mirror.example", "a:5000", "b"}); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestSettingsAreInOneGroup, and have usage that names their value.
func TestSettingsAreInOneGroup(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range All {
		if seen[k.Name] || strings.Count(k.Usage, "`") != 2 {
			t.Errorf("%s: there twice: %t, usage %q", k.Name, seen[k.Name], k.Usage)
		}
		seen[k.Name] = true
	}
}

// TestRunningProcessesAreFoundWithoutTheirVariables: a client may start serve without
// XDG_RUNTIME_DIR, which the user's shell has, or the other way round.
func TestRunningProcessesAreFoundWithoutTheirVariables(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_STATE_HOME", "")
	all := map[string]Dirs{}
	for _, runtime := range []string{"", fmt.Sprintf("/run/user/%d", os.Getuid())} {
		t.Setenv("XDG_RUNTIME_DIR", runtime)
		d, err := FindDirs("")
		if err != nil {
			t.Fatal(err)
		}
		all[runtime] = d
	}
	for looking, d := range all {
		for serving, other := range all {
			if found := (Settings{Dirs: d}).RunDirs(); !slices.Contains(found, other.Run) || found[0] != d.Run {
				t.Errorf("with %q, %q is not among %v", looking, serving, found)
			}
		}
	}
	d, err := FindDirs("/srv/one")
	if err != nil {
		t.Fatal(err)
	}
	if found := (Settings{StateDir: "/srv/one", Dirs: d}).RunDirs(); !slices.Equal(found, []string{"/srv/one/run"}) {
		t.Errorf("a folder that was named has others: %v", found)
	}
}

// TestStartTimeoutIsNoShorterThanClaudesOwn, which people set in milliseconds.
func TestStartTimeoutIsNoShorterThanClaudesOwn(t *testing.T) {
	for _, tt := range []struct {
		ours, claudes string
		want          time.Duration
	}{
		{"", "", 2 * time.Minute},
		{"", "300000", 5 * time.Minute},
		{"", "10000", 2 * time.Minute},
		{"", "soon", 2 * time.Minute},
		{"", "-1", 2 * time.Minute},
		{"", "9999999999999", 24 * time.Hour},
		{"30s", "300000", 30 * time.Second},
	} {
		t.Setenv("TOOLCELL_START_TIMEOUT", tt.ours)
		t.Setenv("MCP_TIMEOUT", tt.claudes)
		var got Settings
		app := &cli.App{Flags: Flags("start-timeout"), Action: func(c *cli.Context) (err error) { got, err = Read(c); return err }}
		if err := app.Run([]string{"toolcell"}); err != nil || got.Proxy.StartTimeout != tt.want {
			t.Errorf("%+v: %v, %v", tt, got.Proxy.StartTimeout, err)
		}
	}
}
