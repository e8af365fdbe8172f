package packages

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestModulesThatDoNotGoTogether has an image with packages of its own: as pip installs
// them, and as Debian does.
func TestModulesThatDoNotGoTogether(t *testing.T) {
	python, err := exec.LookPath("/usr/bin/python3")
	if err != nil {
		t.Skip("needs python3: apt-get install python3")
	}
	dir := t.TempDir()
	for name, content := range map[string]string{
		"numpy-1.24.dist-info/METADATA":       "Name: numpy\nVersion: 1.24\n",
		"numpy-1.24.dist-info/RECORD":         "numpy/__init__.py,,\nnumpy/core.so,,\n",
		"numpy/core.so":                       "",
		"pandas-1.5.egg-info/PKG-INFO":        "Name: pandas\nVersion: 1.5\n",
		"pandas-1.5.egg-info/top_level.txt":   "pandas\n",
		"pandas/__init__.py":                  "needed = ('numpy', 'pytz')",
		"pandas/lib.so":                       "",
		"SciPy-1.10.dist-info/METADATA":       "Name: SciPy\nVersion: 1.10\nRequires-Dist: numpy>=1.20\n",
		"SciPy-1.10.dist-info/RECORD":         "scipy/__init__.py,,\nscipy/x.so,,\n",
		"scipy/x.so":                          "",
		"pure-1.dist-info/METADATA":           "Name: pure\nVersion: 1\nRequires-Dist: numpy\n",
		"pure-1.dist-info/RECORD":             "pure.py,,\n",
		"lxml-4.dist-info/METADATA":           "Name: lxml\nVersion: 4\nRequires-Dist: numpy; extra == 'x'\n",
		"lxml-4.dist-info/RECORD":             "lxml/__init__.py,,\nlxml/x.so,,\n",
		"lxml/x.so":                           "",
		"protobuf-1.dist-info/METADATA":       "Name: protobuf\nVersion: 1\n",
		"protobuf-1.dist-info/RECORD":         "google/protobuf/__init__.py,,\n",
		"google_cloud-1.dist-info/METADATA":   "Name: google-cloud\nVersion: 1\n",
		"google_cloud-1.dist-info/RECORD":     "google/cloud/__init__.py,,\n",
		"matplotlib-3.egg-info/PKG-INFO":      "Name: matplotlib\nVersion: 3\n",
		"matplotlib-3.egg-info/top_level.txt": "matplotlib\nmpl_toolkits\n",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for chosen, want := range map[string]string{
		"numpy==2.4":                    "numpy pandas scipy",
		"numpy==1.24":                   "numpy",
		"numpy==1.26.4":                 "numpy",
		"numpy==1.9":                    "numpy pandas scipy",
		"six==1":                        "",
		"protobuf==2":                   "",
		"matplotlib==4 lxml==5":         "lxml matplotlib mpl_toolkits",
		"numpy==2.4 pandas==3 scipy==2": "numpy pandas scipy",
	} {
		// Without this host's own packages.
		script := "import sys; sys.path[:] = [p for p in sys.path if '-packages' not in p] + [" + "'" + dir + "']\n"
		out, err := exec.Command(python, append([]string{"-I", "-c", script + strings.Replace(conflictsScript, "from __future__ import annotations\n", "", 1)}, strings.Fields(chosen)...)...).CombinedOutput()
		if got := strings.Join(strings.Fields(string(out)), " "); err != nil || got != want {
			t.Errorf("%s: got %q, %v; want %q", chosen, got, err, want)
		}
	}
}

func TestModulesThatAnImageHidesAreBounded(t *testing.T) {
	var names []string
	for i := range maxHidden + 1 {
		names = append(names, fmt.Sprintf("m%d", i))
	}
	for _, n := range []int{maxHidden, maxHidden + 1} {
		j := &job{Run: func(context.Context, Command) (Output, error) {
			return Output{Stdout: []byte(strings.Join(names[:n], "\n") + "\n")}, nil
		}}
		if got, err := j.conflicts(t.Context(), &Lock{}); err != nil || !slices.Equal(got, names[:maxHidden]) {
			t.Errorf("%d: got %d, %v", n, len(got), err)
		}
	}
}

// TestImageIsAskedAboutWhatWasChosen, by its normalized name. A sandbox that does not start is an
// error: the answer would count for as long as the set does.
func TestImageIsAskedAboutWhatWasChosen(t *testing.T) {
	broken := errors.New("broken")
	var asked []string
	j := &job{Run: func(_ context.Context, c Command) (Output, error) {
		asked = c.Args
		return Output{Stdout: []byte("numpy\n")}, broken
	}}
	lock := &Lock{packages: []lockedPackage{{Name: "Ruamel.Yaml", Version: "1.0"}, {Name: "six", Version: "2"}}}
	if hidden, err := j.conflicts(t.Context(), lock); !errors.Is(err, broken) || hidden != nil {
		t.Errorf("got %q, %v", hidden, err)
	}
	if got := asked[max(0, len(asked)-2):]; !slices.Equal(got, []string{"ruamel-yaml==1.0", "six==2"}) {
		t.Errorf("asked about %q", got)
	}
}

func TestSetsThatGoWithTheImageHideNothing(t *testing.T) {
	x, s := newIndex(t, twoWheels(t)), newStore(t)
	r := x.request("a")
	r.Run = func(ctx context.Context, c Command) (Output, error) {
		if slices.Contains(c.Args, conflictsScript) {
			return Output{}, nil
		}
		return x.run(ctx, c)
	}
	set, err := s.Ensure(t.Context(), r, nil)
	if err != nil {
		t.Fatal(err)
	}
	if exists(filepath.Join(set.Dir, HiddenName)) {
		t.Error("it has the file of hidden modules")
	}
}
