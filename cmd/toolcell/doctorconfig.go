package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/installer"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/pins"
	"github.com/toolcell/toolcell/oci/doctor"
)

// settingsChecks reports a file of settings that cannot be used: the user's, without which nothing
// starts, and that of this project.
func settingsChecks(o Options) (checks []doctor.Check) {
	if o.FileError != nil {
		checks = append(checks, doctor.Degraded("RC-CONFIG", "serve and commands refuse to start: "+o.FileError.Error(),
			"# correct it, or take the setting out with toolcell settings unset KEY:\n${EDITOR:-vi} "+text.ShellWord(settings.UserFile())))
	}
	file := settings.UserFile()
	if info, err := os.Stat(file); err == nil && info.Mode().Perm()&0o022 != 0 {
		checks = append(checks, doctor.Degraded("RC-CONFIG", "others may write to "+file+", which says what code sees and may use", "chmod go-w "+text.ShellWord(file)))
	}
	dir := currentProject()
	if _, err := o.Settings.InProject(dir); err != nil {
		checks = append(checks, doctor.Degraded("RC-PROJECT-CONFIG", "serve ignores the project's settings, and exec refuses to start: "+err.Error(),
			"${EDITOR:-vi} "+text.ShellWord(filepath.Join(dir, settings.ProjectFile))))
	}
	return checks
}

// absentMounts reports a folder to be shown that is not there, such as on a disk that is not connected.
func absentMounts(s settings.Settings) []doctor.Check {
	err := s.CheckAbsent()
	if err == nil {
		return nil
	}
	return []doctor.Check{doctor.Degraded("RC-MOUNT", "no code runs: "+err.Error(), "# "+doctor.Advice(err))}
}

// checkServerPins reports servers that have changed their tools since these were pinned,
// or hide something in them, as far as is known. No server is started.
func checkServerPins(servers []config.Server, store pins.Store) (checks []doctor.Check) {
	for _, s := range servers {
		pinned, err := store.Read(pins.Key(s))
		show := "toolcell servers pins " + text.ShellWord(s.Name)
		row := newPinRow(s.Name, pinned)
		switch {
		case err != nil:
			checks = append(checks, doctor.Degraded("RC-SERVER-PINS", fmt.Sprintf("changes to the tools of server %q are not noticed: %v", s.Name, err),
				"rm "+text.ShellWord(store.File(pins.Key(s)))))
		case len(row.Changes) > 0:
			said := fmt.Sprintf("server %q has other tools than those pinned on %s%s", s.Name, day(row.Since), countChanges(row.Changes))
			checks = append(checks, doctor.Degraded("RC-SERVER-PINS", said, "# this shows what has changed, and how to accept it:\n"+show))
		}
		if n := len(row.Hidden); n > 0 {
			said := fmt.Sprintf("server %q defines %s with hidden characters, which may be instructions to a model", s.Name, text.Plural(n, "tool"))
			checks = append(checks, doctor.Degraded("RC-SERVER-HIDDEN", said, show))
		}
	}
	return checks
}

// listServers returns what servers list says of servers. None is started.
func listServers(s settings.Settings, found config.Config) []mcpproxy.ServerStatus {
	proxy := openProxy(found, s, nil)
	defer proxy.Close()
	return proxy.Servers()
}

// checkServerSandboxes says where servers run. Those that belong in sandboxes do not start where a check says
// that no sandbox can run.
func checkServerSandboxes(servers []mcpproxy.ServerStatus, checks []doctor.Check) []doctor.Check {
	const code, maxNamed = "RC-SERVER-SANDBOX", 20
	names := map[string][]string{}
	for _, st := range servers {
		names[st.Where] = append(names[st.Where], st.Name)
	}
	boxed := names[mcpproxy.InSandbox]
	if cause := firstFatal(checks); cause >= 0 && len(boxed) > 0 {
		said := fmt.Sprintf("servers that belong in sandboxes do not start, since none can run, see %s: %s", checks[cause].Code, text.QuoteList(boxed, maxNamed))
		return []doctor.Check{doctor.Degraded(code, said, checks[cause].Cure)}
	}
	var said []string
	for _, where := range []string{mcpproxy.InSandbox, mcpproxy.OnHost, mcpproxy.Remote} {
		if len(names[where]) > 0 {
			said = append(said, where+": "+text.QuoteList(names[where], maxNamed))
		}
	}
	if len(said) == 0 {
		return nil
	}
	return []doctor.Check{doctor.OK(code, "where servers run: "+strings.Join(said, "; "))}
}

// checkServerFolders reports servers, such as one for files, that could write the
// policy or the trust in files of projects, if code that was granted them asks
// for it.
func checkServerFolders(servers []config.Server, own []string) (checks []doctor.Check) {
	for _, s := range servers {
		for _, dir := range argumentFolders(s) {
			file := settings.InTheWay(dir, own)
			if file == "" {
				continue
			}
			said := fmt.Sprintf("server %q may use the folder %s, and toolcell's own files are in %s: code that is granted this server may change what code is allowed",
				s.Name, dir, file)
			checks = append(checks, doctor.Degraded("RC-SERVER-FOLDER", said,
				"# name folders for the purpose in the arguments of the server, or deny it in the policy:\n${EDITOR:-vi} "+text.ShellWord(s.Source)))
			break
		}
	}
	return checks
}

// argumentFolders returns the folders that the arguments of a server name.
func argumentFolders(s config.Server) (dirs []string) {
	home, _ := os.UserHomeDir() // without one no ~ is a folder
	for _, arg := range s.Args {
		for _, path := range argumentPaths(arg) {
			if rest, ok := strings.CutPrefix(path, "~"); ok && home != "" && (rest == "" || rest[0] == '/') {
				path = home + rest
			}
			if !filepath.IsAbs(path) {
				dir, err := filepath.Abs(s.StartDir())
				if err != nil {
					continue
				}
				path = filepath.Join(dir, path)
			}
			if st, err := os.Stat(path); err == nil && st.IsDir() {
				dirs = append(dirs, filepath.Clean(path))
			}
		}
	}
	return dirs
}

// argumentPaths returns what could be a path in an argument: all of it, the value
// of --option=PATH, the source of --volume=PATH:PATH or --mount type=bind,src=PATH,
// and that of a file URL. Without a slash only . and .. are taken for one, and ~.
func argumentPaths(arg string) (paths []string) {
	for part := range strings.SplitSeq(arg, ",") {
		if name, value, ok := strings.Cut(part, "="); ok {
			if name == "dst" || name == "target" || name == "destination" {
				continue // in a container
			}
			part = value
		}
		part, _, _ = strings.Cut(strings.TrimPrefix(part, "file://"), ":")
		paths = append(paths, part)
	}
	return slices.DeleteFunc(append(paths, arg), func(path string) bool {
		return !strings.Contains(path, "/") && path != "." && path != ".." && path != "~"
	})
}

// checkClients are doctor's lines on the clients that are told to start toolcell: entries
// that start one that is gone, or another one than this.
func checkClients(o clientconfig.Options) (checks []doctor.Check) {
	var current []string
	for _, e := range installer.SelfEntries(o) {
		starts := fmt.Sprintf("the entry %q of %s in %s starts %s", e.Name, e.Title, e.File, e.Command)
		switch {
		case e.Path == "":
			checks = append(checks, doctor.Degraded("RC-CLIENT-GONE", starts+", which does not exist", reinstall(o.Self, e)))
		case !sameProgram(e.Path, o.Self):
			checks = append(checks, doctor.Degraded("RC-CLIENT-OTHER", starts+", which is another version than this, "+o.Self, reinstall(o.Self, e)))
		default:
			current = append(current, e.Title)
		}
	}
	if len(current) > 0 && len(checks) == 0 {
		checks = append(checks, doctor.OK("RC-CLIENT", startThis(current)))
	}
	return checks
}

func startThis(clients []string) string {
	if len(clients) == 1 {
		return clients[0] + " starts this program"
	}
	last := len(clients) - 1
	return strings.Join(clients[:last], ", ") + " and " + clients[last] + " start this program"
}

// reinstall writes the command that brings an entry up to date.
func reinstall(self string, e installer.SelfEntry) string {
	cure := text.ShellWord(self) + " install " + e.Client
	if e.Name != clientconfig.ProgramName {
		cure += " --name " + text.ShellWord(e.Name)
	}
	if info, err := os.Stat(e.File); err == nil && info.Mode()&0o200 == 0 {
		cure += " --force" // the user has made it read-only
	}
	return cure
}

// sameProgram reports whether two files are one, or have the same content: a copy
// elsewhere is as good.
func sameProgram(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	if errA != nil || errB != nil || infoA.Size() != infoB.Size() {
		return false
	}
	if os.SameFile(infoA, infoB) {
		return true
	}
	textA, errA := os.ReadFile(a)
	textB, errB := os.ReadFile(b)
	return errA == nil && errB == nil && bytes.Equal(textA, textB)
}
