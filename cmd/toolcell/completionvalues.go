package main

import (
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/consent/inbox"
	"github.com/toolcell/toolcell/bridge/record/history"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/installer"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/timeline"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/pins"
)

// arguments returns candidates for the next argument of the command.
func (t *typed) arguments() (all []candidate) {
	switch t.path {
	case "images inspect", "images rm", "images verify", "images pull":
		return t.from(imageNames)
	case "servers tools", "servers check", "servers update":
		return t.from(serverNames)
	case "servers set":
		return t.from(t.inputs)
	case "servers pins":
		return t.from(t.pinned)
	case "servers trust", "servers untrust":
		t.paths = filePaths
		return t.from(serverNames)
	case "tools show", "tools rm", "tools export":
		return t.from(toolNames)
	case "runs forget":
		return t.from(runIDs)
	case "settings set":
		if len(t.args) == 1 {
			return t.values(&cli.StringFlag{Name: t.args[0]})
		}
	}
	if len(t.args) > 0 && t.path != "install" && t.path != "uninstall" {
		return nil
	}
	switch t.path { // commands that take one, and these two
	case "help":
		all = []candidate{{settingsTopic, "all settings"}}
		for _, c := range visible(t.c.App.Commands) {
			all = append(all, candidate{c.Name, c.Usage})
		}
		return all
	case "install", "uninstall":
		return words(installer.ClientNames()...)
	case "exec":
		t.paths = filePaths
	case "servers call", "servers login", "servers logout", "servers sandbox":
		return t.from(serverNames)
	case "settings set", "settings unset":
		for _, k := range settings.All {
			all = append(all, candidate{k.Name, strings.ReplaceAll(k.Usage, "`", "")})
		}
		return all
	case "approvals show", "approvals approve", "approvals deny":
		return t.from(t.questions)
	case "runs show":
		return t.from(runIDs)
	case "completion":
		return words("bash", "zsh", "fish")
	}
	return nil
}

// values returns candidates for the value of a flag.
func (t *typed) values(f cli.Flag) []candidate {
	if f == nil {
		return nil
	}
	switch f.Names()[0] {
	case "image":
		return append(words("host"), t.from(imageNames)...)
	case "server":
		if strings.HasPrefix(t.path, "runs") {
			return t.from(serverNames)
		}
		return append([]candidate{{"*", "all servers"}}, t.from(serverNames)...)
	case "tool":
		return t.from(calledTools)
	case "client":
		return t.from(runClients)
	case "output":
		return words("compact", "toon", "json")
	case "project":
		return words("read", "off")
	case "pull":
		return words("missing", "always", "never")
	case "start":
		return words("auto", "fork", "container")
	case "log-level":
		return words("DEBUG", "INFO", "WARN", "ERROR")
	case "for":
		return words(scopes...)
	case "status":
		return words(runStatuses...)
	case "since", "until":
		return words("today", "yesterday")
	case "format":
		return words(formatJSONL, formatCSV)
	case "allow-self-server", "log-json":
		return words("0", "1")
	case "state-dir":
		t.paths = folderPaths
	case "servers-config", "policy", "registry-ca", "authfile", "head":
		t.paths = filePaths
	}
	return nil
}

func words(all ...string) (out []candidate) {
	for _, w := range all {
		out = append(out, candidate{value: w})
	}
	return out
}

// The functions below return nothing on errors: completion cannot show them,
// and the command itself will report them.

// from asks a source of candidates that needs the settings.
func (t *typed) from(source func(settings.Settings) []candidate) []candidate {
	s, err := settings.Read(t.c)
	if err != nil {
		return nil
	}
	return source(s)
}

// imageNames returns the names of the cached images.
func imageNames(s settings.Settings) (all []candidate) {
	store, err := openStore(s, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil
	}
	defer store.Close()
	list, _ := store.List()
	for _, i := range list {
		if len(i.Refs) == 0 {
			i.Refs = []string{i.Digest}
		}
		for _, ref := range i.Refs {
			all = append(all, candidate{ref, text.Size(i.Size)})
		}
	}
	return all
}

// toolNames returns the saved tools of this project.
func toolNames(s settings.Settings) (all []candidate) {
	tools, _ := openSavedTools(s).List()
	for _, tool := range tools {
		all = append(all, candidate{tool.Name, firstLine(tool.Doc)})
	}
	return all
}

// questions returns the questions of runs that wait.
func (t *typed) questions(s settings.Settings) (all []candidate) {
	open, err := openApprovals(s)
	if err != nil {
		return nil
	}
	defer open.close()
	questions, _ := inbox.ListAll(open)
	for _, q := range questions {
		if t.path != "approvals approve" && t.path != "approvals deny" || q.State == consent.Pending {
			all = append(all, candidate{q.ID, aboutText(q)})
		}
	}
	return all
}

// completedRuns bounds the runs whose IDs are completed: the newest ones.
const completedRuns = 50

// runIDs returns the runs on record.
func runIDs(s settings.Settings) (all []candidate) {
	r := Options{Settings: s}.history()
	runs, _, _ := newest(r, history.Filter{}, completedRuns)
	codes, _ := r.Codes(runs)
	for _, run := range runs {
		about := timeline.Began(run.Start, time.Now()) + " " + timeline.From(run) + " " + run.Status + " " + timeline.FirstLine(run, codes[run.ID].Value)
		all = append(all, candidate{run.ID, about})
	}
	return all
}

// calledTools returns what these runs called.
func calledTools(s settings.Settings) []candidate {
	return ofRuns(s, func(r history.Run) []string { return r.Tools })
}

// runClients returns whose runs they are.
func runClients(s settings.Settings) []candidate {
	return ofRuns(s, func(r history.Run) []string { return []string{timeline.From(r)} })
}

// ofRuns returns what the newest runs have, each once.
func ofRuns(s settings.Settings, names func(history.Run) []string) []candidate {
	runs, _, _ := newest(Options{Settings: s}.history(), history.Filter{}, completedRuns)
	var all []string
	for _, r := range runs {
		all = append(all, names(r)...)
	}
	slices.Sort(all)
	return words(slices.Compact(all)...)
}

// serverNames returns the user's servers; none is started.
func serverNames(s settings.Settings) (all []candidate) {
	for _, server := range discoverServers(s, slog.New(slog.DiscardHandler)).config.Servers {
		all = append(all, candidate{server.Name, server.Description})
	}
	return all
}

// pinned returns the servers whose pins can be shown or, after accept and a server, the
// tools that can be accepted.
func (t *typed) pinned(s settings.Settings) (all []candidate) {
	switch {
	case len(t.args) == 0:
		return append([]candidate{{acceptWord, "pin tools as they are now"}}, serverNames(s)...)
	case t.args[0] != acceptWord || len(t.args) == 1:
		return serverNames(s)
	case len(t.args) > 2:
		return nil
	}
	for _, server := range discoverServers(s, slog.New(slog.DiscardHandler)).config.Servers {
		if server.Name != t.args[1] {
			continue
		}
		pinned, err := pins.Store{Dir: s.Dirs.Pins()}.Read(pins.Key(server))
		if err != nil || pinned == nil {
			return nil
		}
		for _, name := range slices.Sorted(maps.Keys(pinned.Tools)) {
			if change := pinned.Tools[name].Change(); change != pins.Unchanged {
				all = append(all, candidate{name, string(change)})
			}
		}
	}
	return all
}

// inputs returns the servers that ask for values or, after a server, the values
// that it asks for.
func (t *typed) inputs(s settings.Settings) (all []candidate) {
	for _, in := range discoverServers(s, slog.New(slog.DiscardHandler)).config.Inputs {
		if len(t.args) == 0 {
			all = append(all, candidate{value: in.Server})
		} else if in.Server == t.args[0] {
			all = append(all, candidate{in.ID, in.Description})
		}
	}
	slices.SortFunc(all, func(a, b candidate) int { return strings.Compare(a.value, b.value) })
	return slices.Compact(all)
}

// bashWords splits the line before the cursor as bash does. It returns the
// words after the first, and a function that writes a candidate into the line.
// Bash breaks words at more characters than the shell does, at = and : for one,
// and wants only what follows the last break; inside of quotes it does not.
func bashWords(line, breaks string) (all []string, insert func(string) string) {
	var word strings.Builder
	var quote rune
	begun, escaped := false, false
	for _, r := range line {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped, begun = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, begun = r, true
		case quote == 0 && (r == ' ' || r == '\t'):
			if begun {
				all = append(all, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	all = append(all, word.String())
	if len(all) > 1 {
		all = all[1:] // the program
	}
	if quote != 0 {
		return all, func(value string) string { return value }
	}
	stays := 1 + strings.LastIndexFunc(word.String(), func(r rune) bool {
		return strings.ContainsRune("=:@", r) && strings.ContainsRune(breaks, r) // at others the shell breaks words too
	})
	return all, func(value string) string { return escapeWord(value[min(stays, len(value)):]) }
}

// escapeWord writes a word so that a shell reads it as it is.
func escapeWord(s string) string {
	return regexp.MustCompile("[ \t\"'\\\\$&|;<>()*?\\[\\]{}~#!`]").ReplaceAllString(s, `\$0`)
}
