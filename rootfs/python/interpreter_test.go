package python

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/rootfs/unpack/unpacktest"
)

func TestFindPython(t *testing.T) {
	for name, c := range map[string]struct {
		entries []entry
		env     string
		want    string
	}{
		"system":               {[]entry{program("usr/bin/python3")}, "", "/usr/bin/python3"},
		"local first":          {[]entry{program("usr/bin/python3"), program("usr/local/bin/python3")}, "", "/usr/local/bin/python3"},
		"order of PATH":        {[]entry{program("usr/bin/python3"), program("opt/bin/python3")}, "PATH=/opt/bin:/usr/bin", "/opt/bin/python3"},
		"python3 beats python": {[]entry{program("usr/bin/python"), program("bin/python3")}, "", "/bin/python3"},
		"only python":          {[]entry{program("usr/bin/python")}, "", "/usr/bin/python"},
		"python is 2.7":        {[]entry{symlink("usr/bin/python", "python2.7"), program("usr/bin/python2.7")}, "", ""},
		"only numbered":        {[]entry{program("usr/bin/python3.10"), program("usr/bin/python3.11"), program("usr/bin/python3.14-config")}, "", "/usr/bin/python3.11"},
		"too old":              {[]entry{symlink("usr/bin/python3", "python3.9"), program("usr/bin/python3.9")}, "", ""},
		"absolute symlink":     {[]entry{symlink("usr/bin/python3", "/opt/py/bin/python3.12"), program("opt/py/bin/python3.12")}, "", "/usr/bin/python3"},
		"free-threaded":        {[]entry{symlink("usr/bin/python3", "python3.13t"), program("usr/bin/python3.13t")}, "", "/usr/bin/python3"},
		"a name of digits":     {[]entry{symlink("usr/bin/python3", "/opt/py/9"), program("opt/py/9")}, "", "/usr/bin/python3"},
		"through directories":  {[]entry{symlink("bin", "usr/bin"), program("usr/bin/python3")}, "PATH=/bin", "/bin/python3"},
		"dangling symlink":     {[]entry{symlink("usr/bin/python3", "/nowhere")}, "", ""},
		"symlink to the host":  {[]entry{symlink("usr/bin/python3", "../../../../../../bin/sh")}, "", ""},
		"symlink loop":         {[]entry{symlink("usr/bin/python3", "python3")}, "", ""},
		"not executable":       {[]entry{file("usr/bin/python3", "")}, "", ""},
		"a directory":          {[]entry{dir("usr/bin/python3")}, "", ""},
		"relative PATH":        {[]entry{program("usr/bin/python3")}, "PATH=usr/bin:.", ""},
		"nothing":              {nil, "", ""},
	} {
		got, err := Find(t.Context(), unpacktest.Root(t, c.entries...), []string{c.env})
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: got %q, %v; want %q", name, got, err, c.want)
		}
		if err != nil && !strings.Contains(err.Error(), "python:3.14-slim") {
			t.Errorf("%s: no hint in %v", name, err)
		}
	}
}

// TestFindPythonListsNoFolder: an image may have a million files named python3.N, each of
// which would have to be looked at. Finding ends with its context.
func TestFindPythonListsNoFolder(t *testing.T) {
	root := unpacktest.Root(t, program("usr/bin/python3.100"), program("usr/bin/python3.18446744073709551617"))
	if got, err := Find(t.Context(), root, nil); err == nil {
		t.Errorf("found %q", got)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Find(cancelled, root, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("when cancelled: %v", err)
	}
}
