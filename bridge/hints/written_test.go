package hints

import (
	"slices"
	"testing"
)

// TestFilesOfEarlierCallsAreFound, by any path that means one in /workspace/out.
func TestFilesOfEarlierCallsAreFound(t *testing.T) {
	const (
		files   = ", and the sandbox has none of the user's files: " + aFolder
		empty   = "each call begins with an empty /workspace and /tmp"
		unnamed = "an earlier call wrote out/r.csv, which is kept for the user, not for later calls: "
		work    = unnamed + `give the calls that share files the same session, such as session="work"`
		ofBoth  = `sessions "a", "b" have out/r.csv: call run_python with the one that is meant`
		ofA     = `session "a" has out/r.csv: call run_python with session="a"`
	)
	for name, tt := range map[string]struct {
		path, session string
		written, live []string // sessions
		none          bool
		want          string
	}{
		"no call wrote it":          {"out/r.csv", "", nil, nil, false, empty + ", unless it continues a session" + files},
		"nor could it":              {"out/r.csv", "", nil, nil, true, empty + files},
		"nor in this session":       {"out/r.csv", "b", nil, []string{"b"}, false, "the files of a session are its own" + files},
		"a call wrote it":           {"/workspace/out/r.csv", "", []string{""}, nil, false, work},
		"named from the folder":     {"out/r.csv", "", []string{""}, nil, false, work},
		"named alone":               {"./r.csv", "", []string{""}, nil, false, work},
		"without sessions":          {"/workspace/out/r.csv", "", []string{""}, nil, true, unnamed + "make it again in this one"},
		"a session wrote it":        {"/workspace/r.csv", "", []string{"a"}, []string{"a"}, false, ofA},
		"another session wrote it":  {"out/r.csv", "b", []string{"a"}, []string{"a", "b"}, false, ofA},
		"which has ended":           {"out/r.csv", "", []string{"a"}, nil, false, work},
		"this session wrote it":     {"out/r.csv", "a", []string{"a"}, []string{"a"}, false, "the files of a session are its own" + files},
		"several sessions wrote it": {"out/r.csv", "", []string{"a", "b"}, []string{"a", "b"}, false, ofBoth},
		"and this is another":       {"out/r.csv", "c", []string{"a", "b"}, []string{"a", "b", "c"}, false, "the files of a session are its own" + files},
		"and another did":           {"out/r.csv", "a", []string{"a", "b"}, []string{"a", "b"}, false, "the files of a session are its own" + files},
	} {
		var n Names
		for _, session := range tt.written {
			n.Add(session, []string{"r.csv"})
		}
		got := For(Case{
			Failed: true, Error: "FileNotFoundError: [Errno 2] No such file or directory: '" + tt.path + "'", Written: &n,
			Session: tt.session, Live: func(name string) bool { return slices.Contains(tt.live, name) }, NoSessions: tt.none,
		})
		if got != tt.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, tt.want)
		}
	}
}
