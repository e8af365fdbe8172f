package hints

import (
	"strings"
	"testing"
)

// TestMissingFileIsExplainedOnlyIfItMayBeTheUsers: nothing is said of programs, of folders
// to write to, of files of the image, and of what is mounted.
func TestMissingFileIsExplainedOnlyIfItMayBeTheUsers(t *testing.T) {
	const none, own = "the sandbox has none of the user's files", "each call begins with an empty /workspace"
	traceback := func(line string) []string {
		return []string{"Traceback (most recent call last):", `  File "<run_python>", line 1, in <module>`, "    " + line, `  File "/usr/lib/python3.14/pathlib/_local.py", line 5, in read_text`, "    with io.open(self, 'w') as f:"}
	}
	for _, tt := range []struct {
		err    string
		stderr []string
		want   string
	}{
		{"FileNotFoundError: [Errno 2] No such file or directory: '/home/me/notes.txt'", nil, none},
		{"FileNotFoundError: [Errno 2] No such file or directory: '/Users/me/notes.txt'", nil, none},
		{"FileNotFoundError: [Errno 2] No such file or directory: '~/notes.txt'", nil, none},
		{`FileNotFoundError: [Errno 2] No such file or directory: 'C:\\Users\\me\\a.txt'`, nil, none},
		{`FileNotFoundError: [Errno 2] No such file or directory: "/mnt/it's.txt"`, nil, none},
		{"FileNotFoundError: [Errno 2] No such file or directory: '/mnt/new/a.txt'", traceback(`open("/mnt/new/a.txt", "w")`), none},
		{"PermissionError: [Errno 13] Permission denied: '/root/notes.txt'", nil, none},
		{"PermissionError: [Errno 13] Permission denied: '/home/me/notes.txt'", nil, none},
		{"PermissionError: [Errno 13] Permission denied: '/usr/x'", nil, ""},
		{"PermissionError: [Errno 13] Permission denied: '/opt/x'", nil, ""},
		{"PermissionError: [Errno 13] Permission denied: '/tmp/x'", nil, ""},
		{"FileNotFoundError: [Errno 2] No such file or directory: 'README.md'", traceback(`Path("README.md").read_text()`), own},
		{"FileNotFoundError: [Errno 2] No such file or directory: '/workspace/src/a.py'", nil, own},
		{"FileNotFoundError: [Errno 2] No such file or directory: '/tmp/a.csv'", nil, own},
		{"FileNotFoundError: [Errno 2] No such file or directory: 'plots/a.csv'", traceback(`with open("plots/a.csv", "w") as f:`), ""},
		{"FileNotFoundError: [Errno 2] No such file or directory: 'plots/a.csv'", traceback(`Path("plots/a.csv").write_text("x")`), ""},
		{"FileNotFoundError: [Errno 2] No such file or directory: 'plots/a.csv'", traceback(`df.to_csv("plots/a.csv")`), ""},
		{"FileNotFoundError: [Errno 2] No such file or directory: 'plots/a'", append(traceback(`os.makedirs("plots/a/b")`)[:3], `  File "<frozen os>", line 9, in makedirs`, "FileNotFoundError: …"), ""},
		{"FileNotFoundError: [Errno 2] No such file or directory: 'plots/a.csv'", append(traceback(`open("plots/a.csv", "w")`), `  File "<run_python>", line 9, in end`), ""},
		{"FileNotFoundError: [Errno 2] No such file or directory: 'git'", []string{`  File "/usr/lib/python3.14/subprocess.py", line 1, in _execute_child`}, ""},
		{"FileNotFoundError: [Errno 2] No such file or directory: 'git'", []string{`  File "<run_python>", line 1, in <module>`, "    run(['git'])", "  [3 frames inside subprocess]"}, ""},
		{"FileNotFoundError: [Errno 2] No such file or directory: 'git'", []string{`  File "<run_python>", line 1, in <module>`, "    run(['git'])", "  [6 frames inside asyncio, subprocess]"}, ""},
		{"FileNotFoundError: [Errno 2] No such file or directory: '/etc/x'", nil, ""},
		{"FileNotFoundError: [Errno 2] No such file or directory: '/data/x'", nil, ""},
		{"FileNotFoundError: [Errno 2] No such file or directory: '/database/x'", nil, none},
		{"FileNotFoundError: no such thing", nil, ""},
		{"ValueError: [Errno 2] No such file or directory: '/home/x'", nil, ""},
	} {
		got := For(Case{Failed: true, Error: tt.err, Stderr: tt.stderr, Mounted: []string{"/data"}})
		if tt.want == "" && got != "" || !strings.HasPrefix(got, tt.want) || got != "" && !strings.Contains(got, `files but those in "/data": one of`) {
			t.Errorf("%s, %q: %q, want %q", tt.err, tt.stderr, got, tt.want)
		}
	}
}

// aFolder is what a hint suggests for a file that is not of the client's folder.
const aFolder = "one of the user's MCP servers may read them, or the user can give code a folder with TOOLCELL_MOUNTS (toolcell exec: --mounts)"

// TestFileOfTheProjectNamesTheSetting only if it may be one, and its place if it is shown.
func TestFileOfTheProjectNamesTheSetting(t *testing.T) {
	const setting = "the project's files with TOOLCELL_PROJECT=read (toolcell exec: --project), or a folder with TOOLCELL_MOUNTS (toolcell exec: --mounts)"
	missing := func(name string) string {
		return "FileNotFoundError: [Errno 2] No such file or directory: '" + name + "'"
	}
	off, shown := Case{Folder: "/home/me/shop", NoProject: true}, Case{Folder: "/home/me/shop", Project: "/project", Mounted: []string{"/project"}}
	refused := Case{Folder: "/home/me/shop", NotShown: true}
	for _, tt := range []struct {
		r         Case
		err, want string
	}{
		{off, missing("data.csv"), setting},
		{off, missing("/home/me/shop/data.csv"), setting},
		{off, "PermissionError: [Errno 13] Permission denied: '/home/me/shop/data.csv'", setting},
		{off, missing("/home/me/shopping.csv"), aFolder},
		{off, missing("/tmp/x.csv"), aFolder},
		{Case{NoProject: true}, missing("/home/me/data.csv"), aFolder},
		{refused, missing("data.csv"), "each call begins with an empty /workspace and /tmp, unless it continues a session"}, // the note says the rest
		{refused, missing("/home/me/shop/data.csv"), ""},
		{refused, missing("/home/me/other.csv"), ""},
		{shown, missing("data.csv"), `files but those in "/project": ` + aFolder},
		{shown, missing("/home/me/shop/a b/data.csv"), `the client's folder is at /project in the sandbox: this is "/project/a b/data.csv"`},
		{shown, missing("/home/me/other.csv"), `files but those in "/project": ` + aFolder},
		{shown, "PermissionError: [Errno 13] Permission denied: '/project/a b/c'", "on the host only its owner may read it: the user can change that there with chmod o+rX 'a b/c'"},
		{shown, missing("/project/nothing"), ""},
		{off, "PermissionError: [Errno 13] Permission denied: '/project/x'", ""},
	} {
		tt.r.Failed, tt.r.Error = true, tt.err
		got := For(tt.r)
		if !strings.HasSuffix(got, tt.want) || (tt.want == "") != (got == "") {
			t.Errorf("%+v, %s: %q, want %q", tt.r, tt.err, got, tt.want)
		}
	}
}

// TestAddressOfAResourceIsNoFile, and neither is what code that went on has caught.
func TestAddressOfAResourceIsNoFile(t *testing.T) {
	for _, name := range []string{"toolcell://runs/7f3a/stdout.txt", "/workspace/toolcell:/runs/7f3a/stdout.txt"} {
		if got := For(Case{Failed: true, Error: "FileNotFoundError: [Errno 2] No such file or directory: '" + name + "'"}); got != ofTheClient {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := For(Case{Error: "FileNotFoundError: [Errno 2] No such file or directory: '/home/me/notes.txt'"}); got != "" {
		t.Errorf("the code did not fail: %q", got)
	}
}

// TestVariableOfAnotherSessionIsNotNamed: in the sessions that a model had, most names are
// the same.
func TestVariableOfAnotherSessionIsNotNamed(t *testing.T) {
	var n Names
	for _, session := range []string{"1", "2", "3", "4", "5"} {
		n.Add(session, []string{"a"})
	}
	live := func(name string) bool { return name != "1" } // it gave its place to the fifth
	for session, want := range map[string]string{
		"1": "",
		"6": "",
		"":  `sessions "2", "3", "4", "5" have a: call run_python with the one that is meant`,
	} {
		r := Case{Failed: true, Error: "NameError: name 'a' is not defined", Earlier: &n, Session: session, Live: live}
		if got := For(r); got != want {
			t.Errorf("in session %q: %q, want %q", session, got, want)
		}
	}
}

// TestErrorsOfResultsInAPlanAreExplained, whatever says so.
func TestErrorsOfResultsInAPlanAreExplained(t *testing.T) {
	for failure, want := range map[string]bool{
		"TypeError: the JSON object must be str, bytes or bytearray, not PlannedResult":                            true,
		"TypeError: Object of type PlannedResult is not JSON serializable":                                         true,
		"TypeError: <result 1>.n stands for the result of a call that was only planned: its length is not known":   true,
		"TypeError: fromisoformat: argument must be str":                                                           true,
		"TypeError: can only join an iterable":                                                                     true,
		"ValueError: Invalid file path or buffer object type: <class 'toolcell_runner.placeholder.PlannedResult'>": true,
		"ValueError: no issue":         false,
		"KeyError: 'PlannedResultNot'": false,
	} {
		got := For(Case{Failed: true, Error: failure, Planned: true})
		if strings.HasPrefix(got, "in a dry run") != want || For(Case{Failed: true, Error: failure}) != "" {
			t.Errorf("%s: %q", failure, got)
		}
	}
}
