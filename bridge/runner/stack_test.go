package runner

import "testing"

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
