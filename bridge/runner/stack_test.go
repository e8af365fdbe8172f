package runner

import (
	"strings"
	"testing"
)

func TestFramesOfLibrariesAreKnown(t *testing.T) {
	for file, want := range map[string]string{
		"<run_python>": "", "<run_python 12>": "", "<user_tools.f>": "", "<string>": "", "/workspace/x.py": "", "/tmp/a/b.py": "", "x.py": "", "": "",
		"<frozen importlib._bootstrap>":                    "Python",
		"/usr/local/lib/python3.14/asyncio/base_events.py": "asyncio",
		"/usr/lib/python3.13/json/__init__.py":             "json",
		"/usr/lib/python3.9/subprocess.py":                 "subprocess",
		"/usr/lib/python3/dist-packages/numpy/core/x.py":   "numpy",
		"/opt/conda/lib/python3.12/site-packages/six.py":   "six",
		"pandas/_libs/index.pyx":                           "pandas",
	} {
		if got := (stackFrame{File: file}).library(); got != want {
			t.Errorf("%q is of %q, want %q", file, got, want)
		}
	}
}

// TestFramesOfAnImportAreOneLine: they alternate between libraries and Python.
func TestFramesOfAnImportAreOneLine(t *testing.T) {
	const lib = "/usr/lib/python3/dist-packages/"
	machinery := stackFrame{File: "<frozen importlib._bootstrap>"}
	for want, stack := range map[string][]stackFrame{
		"line 1, in <module>: import pandas\n[8 frames inside pandas and numpy]": {
			{File: "<run_python>", Line: 1, Func: "<module>"},
			machinery, machinery,
			{File: lib + "pandas/__init__.py"},
			machinery,
			{File: lib + "numpy/__init__.py"},
			machinery,
			{File: lib + "pandas/x.py"},
			machinery,
		},
		"[2 frames inside Python]":             {machinery, machinery},
		"[5 frames inside a, b, c and 2 more]": {{File: lib + "a.py"}, {File: lib + "b.py"}, {File: lib + "c.py"}, {File: lib + "d.py"}, {File: lib + "e.py"}},
		"[1 frame inside a]\ntask Task-2:\n[1 frame inside b]\ntask <x>:\nline 2, in f": {
			{File: lib + "a.py"}, {File: lib + "b.py", Task: "Task-2"}, {File: "<run_python>", Line: 2, Func: "f", Task: "<x>\x1b"},
		},
		"user_tools.f line 3, in f: return 1\n/workspace/x.py line 4, in g": {
			{File: "<user_tools.f>", Line: 3, Func: "f", Text: "return 1"}, {File: "/workspace/x.py", Line: 4, Func: "g"},
		},
		"[1 frame inside a]\nline 2, in f\n[1 frame inside a]": {{File: lib + "a.py"}, {File: "<run_python>", Line: 2, Func: "f"}, {File: lib + "a.py"}},
	} {
		if got := strings.Join(stackLines(stack, "import pandas", "<run_python>"), "\n"); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
