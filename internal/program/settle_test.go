package program

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestVersionsAreOrdered(t *testing.T) {
	order := []Version{
		{"0.0.9", ""}, {"0.1.0-dev", "2026-01-01"}, {"0.1.0", ""}, {"0.1.0", "2026-11-25"}, {"0.1.0", "2026-11-26"}, {"0.2.0-dev", ""}, {"0.10.0", ""}, {"1.0.0", ""},
	}
	for i, v := range order {
		for j, other := range order {
			if got := v.NewerThan(other); got != (i > j) {
				t.Errorf("%s newer than %s: %t", v, other, got)
			}
		}
	}
}

// TestSettle: the test's own program is in a folder of go test, so a copy elsewhere settles.
func TestSettle(t *testing.T) {
	if path := os.Getenv("SETTLE_AS"); path != "" {
		settleHere(t)
		return
	}
	this := Version{"0.2.0", "2026-11-25"}
	says := func(version string) string { return "#!/bin/sh\necho '" + version + "'\n" }
	for name, c := range map[string]struct {
		there      string // at the stable path; empty for nothing
		force, dry bool
		did        string
		was        Version
		copied     bool
	}{
		"nothing":          {"", false, false, Placed, Version{}, true},
		"dry run":          {"", false, true, Placed, Version{}, false},
		"older":            {says(`[{"version": "0.1.9"}]`), false, false, Replaced, Version{Version: "0.1.9"}, true},
		"older, dry run":   {says(`[{"version": "0.1.9"}]`), false, true, Replaced, Version{Version: "0.1.9"}, false},
		"an earlier build": {says(`[{"version": "0.2.0", "date": "2026-11-24"}]`), false, false, Replaced, Version{"0.2.0", "2026-11-24"}, true},
		"newer":            {says(`[{"version": "0.10.0"}]`), false, false, Kept, Version{Version: "0.10.0"}, false},
		"newer, by force":  {says(`[{"version": "0.10.0"}]`), true, false, Replaced, Version{Version: "0.10.0"}, true},
		"a later build":    {says(`[{"version": "0.2.0", "date": "2026-11-26"}]`), false, false, Kept, Version{"0.2.0", "2026-11-26"}, false},
		"a form of before": {says(`{"version": "0.1.9"}`), false, false, Replaced, Version{}, true},
		"one that fails":   {"#!/bin/sh\nexit 1\n", false, false, Replaced, Version{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			home(t)
			if c.there != "" {
				put(t, StablePath(), c.there)
			}
			got := settleAs(t, this, c.force, c.dry)
			if want := (Settled{StablePath(), c.did, c.was}); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
			now, err := os.ReadFile(StablePath())
			if copied := err == nil && strings.HasPrefix(string(now), "\x7fELF"); copied != c.copied {
				t.Errorf("copied: %t, want %t", copied, c.copied)
			}
			if !c.copied {
				return
			}
			if info, err := os.Stat(StablePath()); err != nil || info.Mode().Perm() != 0o755 {
				t.Errorf("it has the mode %v, %v", info.Mode(), err)
			}
			if from := at(StablePath()).Origin.Name; from != "source" {
				t.Errorf("the copy is from %q", from)
			}
			if again := settleAs(t, this, c.force, false); again != (Settled{Path: StablePath()}) {
				t.Errorf("again: %+v", again)
			}
		})
	}
}

// settleAs has a copy of this test's program settle.
func settleAs(t *testing.T, version Version, force, dry bool) (got Settled) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(put(t, filepath.Join(os.Getenv("HOME"), "clone", "toolcell"), string(data)), "-test.run=^TestSettle$")
	cmd.Env = append(os.Environ(), "SETTLE_AS="+fmt.Sprintf("%s %s %t %t", version.Version, version.Date, force, dry))
	out, err := cmd.CombinedOutput()
	_, answer, _ := strings.Cut(string(out), "settled: ")
	answer, _, _ = strings.Cut(answer, "\n")
	if err != nil || json.Unmarshal([]byte(answer), &got) != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return got
}

func settleHere(t *testing.T) {
	var version Version
	var force, dry bool
	if _, err := fmt.Sscan(os.Getenv("SETTLE_AS"), &version.Version, &version.Date, &force, &dry); err != nil {
		t.Fatal(err)
	}
	settled, err := Settle(t.Context(), version, force, dry)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(settled)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("settled: %s\n", text)
}

// TestSettleRefuses without a home, and a program of go run, as this test's is.
func TestSettleRefuses(t *testing.T) {
	home(t)
	if _, err := Settle(t.Context(), Version{"0.1.0", ""}, false, false); err == nil || !strings.Contains(err.Error(), "make install") {
		t.Errorf("of go test: %v", err)
	}
	t.Setenv("HOME", "")
	if _, err := Settle(t.Context(), Version{"0.1.0", ""}, false, false); err == nil || !strings.Contains(err.Error(), "HOME") {
		t.Errorf("without a home: %v", err)
	}
}
