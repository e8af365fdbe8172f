package hints

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/internal/text"
)

var (
	// noFile finds the path in Python's message about a file that is not there or that the
	// sandbox's user may not see.
	noFile = text.Pattern(`^(FileNotFoundError: \[Errno 2\] No such file or directory|PermissionError: \[Errno 13\] Permission denied): (?:'([^']{1,500})'|"([^"]{1,500})")`)
	// startsProgram finds, in a traceback, that Python was to start a program that is not
	// there. The runner leaves out the frames of the library.
	startsProgram = text.Pattern(`\b(?:_execute_child|_posix_spawn|create_subprocess_\w+|subprocess\.\w+\()|\bframes? inside [^\]]*\bsubprocess\b`)
	// writes finds code that makes a file, whose folder is what is missing.
	writes = text.Pattern(`\bopen\([^)]*,\s*(?:mode\s*=\s*)?["'][rbt]*[wax]|\.(?:write_text|write_bytes|touch|mkdir|to_\w+|save\w*|dump)\(|\b(?:mkdir|makedirs|rename|copy\w*|move)\(`)
	// windowsPath finds paths such as C:\x, as Python's repr shows them.
	windowsPath = text.Pattern(`^[A-Za-z]:[\\/]`)
)

// systemDirs are of the image: none of the user's files would be there.
var systemDirs = []string{"/bin", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/proc", "/run", "/sbin", "/sys", "/usr"}

// missingFile is for code that reads a file which the sandbox does not have: the user's,
// or one that an earlier call wrote.
func missingFile(r Case) string {
	found := noFile().FindStringSubmatch(r.Error)
	if found == nil || !r.Failed {
		return ""
	}
	name := found[2] + found[3]
	if strings.Contains(name, "toolcell:/") {
		return ofTheClient
	}
	line := lastLine(r.Stderr)
	full := name
	if !path.IsAbs(name) && !strings.HasPrefix(name, "~") && !windowsPath().MatchString(name) {
		full = path.Join("/workspace", name)
	}
	inside := func(dir string) bool { return full == dir || strings.HasPrefix(full, dir+"/") }
	own := inside("/workspace") || inside("/tmp")
	if hint := ofTheProject(r, found[1], full); hint != "" {
		return hint
	}
	switch {
	case slices.ContainsFunc(r.Stderr, startsProgram().MatchString), slices.ContainsFunc(r.Mounted, inside), slices.ContainsFunc(systemDirs, inside):
		return ""
	case strings.HasPrefix(found[1], "PermissionError") && !inside("/root") && !inside("/home"):
		return ""
	case !own:
		return noneOfTheUser(r, full)
	case writes().MatchString(line), line == "" && !strings.ContainsAny(name, "./"): // it may be a program
		return ""
	}
	if hint := writtenEarlier(r, name); hint != "" {
		return hint
	}
	begins := "each call begins with an empty /workspace and /tmp"
	if r.Session != "" {
		begins = "the files of a session are its own"
	} else if !r.NoSessions {
		begins += ", unless it continues a session"
	}
	if none := noneOfTheUser(r, full); none != "" {
		begins += ", and " + none
	}
	return begins
}

// noneOfTheUser is for a file of the user that the sandbox does not have. If the user has set that
// the project be shown, a note says why it is not: another way would contradict it.
func noneOfTheUser(r Case, full string) string {
	if r.NotShown {
		return ""
	}
	return "the sandbox has none of the user's files" + otherThan(r.Mounted) + ": " + readFiles(r, full)
}

// ofTheClient is for the addresses that results name.
const ofTheClient = "toolcell:// is the address of a resource, which the client reads and code cannot: print less of long output, " +
	"or give the calls the same session, where the next one finds it in /tmp/toolcell/stdout.txt"

// ofTheProject is for a file of the client's folder, which the sandbox is shown.
func ofTheProject(r Case, err, full string) string {
	if r.Project == "" {
		return ""
	}
	name, closed := strings.CutPrefix(full, r.Project+"/")
	if closed && strings.HasPrefix(err, "PermissionError") {
		return fmt.Sprintf("on the host only its owner may read it: the user can change that there with chmod o+rX %s", text.ShellWord(name))
	}
	if name, ofHost := strings.CutPrefix(full, r.Folder+"/"); ofHost && r.Folder != "" {
		return fmt.Sprintf("the client's folder is at %s in the sandbox: this is %q", r.Project, path.Join(r.Project, name))
	}
	return ""
}

// readFiles says what may read a file of the host. A relative path, or one below the client's
// folder, may be the project's.
func readFiles(r Case, full string) string {
	const servers, mounts = "one of the user's MCP servers may read them, or the user can give code ", "TOOLCELL_MOUNTS (toolcell exec: --mounts)"
	relative := strings.HasPrefix(full, "/workspace/")
	if r.NoProject && (relative || r.Folder != "" && strings.HasPrefix(full, r.Folder+"/")) {
		return servers + "the project's files with TOOLCELL_PROJECT=read (toolcell exec: --project), or a folder with " + mounts
	}
	return servers + "a folder with " + mounts
}

// otherThan names the user's files that the sandbox has.
func otherThan(mounted []string) string {
	if len(mounted) == 0 {
		return ""
	}
	return " but those in " + text.QuoteList(mounted, 5)
}

// lastLine returns the line of the code that failed, as the end of a traceback shows it.
func lastLine(stderr []string) string {
	for i, line := range slices.Backward(stderr) {
		frame := frameLine().FindStringSubmatch(line)
		if frame == nil || i+1 == len(stderr) || strings.Contains(frame[1], "/lib/python") || strings.HasPrefix(frame[1], "<frozen ") {
			continue // of a library
		}
		return stderr[i+1]
	}
	return ""
}

// writtenEarlier is for a file that an earlier run has left in /workspace/out.
func writtenEarlier(r Case, name string) string {
	name = strings.TrimPrefix(strings.TrimPrefix(path.Clean(name), "/workspace/"), "out/")
	sessions := r.Written.find(name)
	live := liveSessions(r, sessions)
	switch {
	case len(sessions) == 0 || r.Session != "" && slices.Contains(sessions, r.Session):
		return ""
	case len(live) == 1:
		return fmt.Sprintf("session %q has out/%s: call run_python with session=%[1]q", live[0], name)
	case len(live) > 1 && r.Session != "":
		return "" // it may be another file in each of them
	case len(live) > 1:
		return fmt.Sprintf("sessions %s have out/%s: call run_python with the one that is meant", text.QuoteList(live, 5), name)
	case r.NoSessions:
		return fmt.Sprintf("an earlier call wrote out/%s, which is kept for the user, not for later calls: make it again in this one", name)
	}
	return fmt.Sprintf("an earlier call wrote out/%s, which is kept for the user, not for later calls: "+
		"give the calls that share files the same session, such as session=\"work\"", name)
}
