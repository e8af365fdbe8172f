package sandboxes

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestGreetingNamesThePythonThatRuns(t *testing.T) {
	const unreachable = "no route to host"
	for name, tt := range map[string]struct {
		ref   string
		named bool
		err   error
		link  string // of /usr/bin/python3
		want  string
	}{
		"the image":         {ref, false, nil, "python3.14", "Python 3.14 in a sandbox of " + ref},
		"a stand-in":        {ref, false, errors.New(unreachable), "python3.11", "Python 3.11 of this host, in a sandbox, since the default image could not be pulled: " + unreachable},
		"the host, asked":   {"host", true, nil, "/etc/alternatives/python3.12", "Python 3.12 of this host, in a sandbox"},
		"no version's name": {ref, true, nil, "pypy", "Python in a sandbox of " + ref},
		"no link":           {ref, true, nil, "", "Python in a sandbox of " + ref},
		"nothing to be had": {ref, true, errors.New(unreachable), "", "Python in a sandbox of " + ref},
	} {
		t.Run(name, func(t *testing.T) {
			s, store := newImages(t)
			s.Ref, s.Named, store.errs[ref] = tt.ref, tt.named, tt.err
			for _, root := range store.roots {
				bin := filepath.Join(root.Dir, "usr/bin")
				err := os.MkdirAll(bin, 0o755)
				if err == nil && tt.link != "" {
					err = os.Symlink(tt.link, filepath.Join(bin, "python3"))
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if got := s.Greeting(t.Context(), nil); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
