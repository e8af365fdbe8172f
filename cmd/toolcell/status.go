package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/consent/inbox"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/footprint"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/internal/program"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/clientconfig/edit"
	"github.com/toolcell/toolcell/mcpproxy/config"
)

// statusSettings are those that say where everything is.
var statusSettings = append(slices.Clone(discoverySettings), "policy")

func statusCommand(s *console.Streams) *cli.Command {
	c := command("status", "show what toolcell has on this machine, what is running, and what is waiting for you", "", statusSettings, action(s, status))
	c.Description = "It starts nothing and uses no network. To check whether everything works: toolcell doctor."
	return c
}

// A statusRow is what status shows.
type statusRow struct {
	Version   string           `json:"version"`
	Commit    string           `json:"commit"`
	Date      string           `json:"date"`
	Program   string           `json:"program"`
	Stable    stableCopy       `json:"stable"`
	Policy    userFile         `json:"policy"`
	Config    userFile         `json:"config"`
	Clients   []statusClient   `json:"clients"`
	Servers   map[string]int   `json:"servers"`   // how many, by status
	Running   []runningProcess `json:"running"`   // toolcell processes that run code
	Questions []inbox.Question `json:"questions"` // that wait
	Disk      []footprint.Use  `json:"disk"`
	Bytes     int64            `json:"bytes"` // on the disk, of all
	Notes     []string         `json:"notes"` // what could not be looked at
}

// A stableCopy is the copy of the program for clients to start.
type stableCopy struct {
	Path   string `json:"path"`
	Exists bool   `json:"exists"`
	Same   bool   `json:"same"` // it is this program
}

// A userFile is one that the user writes.
type userFile struct {
	File   string `json:"file"`
	Exists bool   `json:"exists"`
	Error  string `json:"error,omitempty"` // why it cannot be used
}

// A statusClient is an entry for toolcell in a client.
type statusClient struct {
	Client  string `json:"client"`
	Title   string `json:"title"`
	File    string `json:"file"`
	Project string `json:"project"` // folder of the project whose file it is; "" for the user's own
	Name    string `json:"name"`    // of the entry; "" if it starts toolcell by another program, or is switched off
	Command string `json:"command"` // that it starts
	Starts  string `json:"starts"`  // this, other, gone, unknown, or nothing if the entry has gone
	Error   string `json:"error,omitempty"`
}

func status(ctx context.Context, o Options) error {
	row, err := newStatus(ctx, o)
	if err != nil {
		return err
	}
	if o.JSON {
		return console.PrintJSON(o.Streams, []statusRow{row})
	}
	return row.print(o)
}

// newStatus looks at everything.
func newStatus(ctx context.Context, o Options) (row statusRow, err error) {
	row = statusRow{Version: version, Commit: commit, Date: date, Program: program.Self(), Servers: map[string]int{}, Notes: []string{}}
	if path := program.StablePath(); path != "" {
		row.Stable = stableCopy{path, exists(path), sameProgram(path, row.Program)}
	}
	row.Policy, row.Config = policyState(o.Settings), configState()
	quiet := slog.New(slog.DiscardHandler)
	found := discoverServers(o.Settings, quiet)
	files, err := findClientFiles(found.options, o.Settings)
	if err != nil {
		return row, err
	}
	row.Clients, row.Notes = files.entries(found.options.Self), append(row.Notes, files.notes()...)
	servers := found.config
	servers.Problems = slices.DeleteFunc(slices.Clone(servers.Problems), func(p config.Problem) bool {
		return p.Skipped && p.Status == config.StatusSkipped // toolcell's own entry, which is among the clients
	})
	proxy := openProxy(servers, o.Settings, quiet)
	for _, st := range proxy.Servers() {
		row.Servers[st.Status]++
	}
	if err := proxy.Close(); err != nil {
		return row, err
	}
	row.Running, err = runningProcesses(o.Settings)
	row.note(err)
	slices.SortFunc(row.Running, byPID)
	if row.Running == nil {
		row.Running = []runningProcess{}
	}
	row.Questions = row.waiting(o.Settings)
	disk, err := footprint.Look(ctx, places(o.Settings))
	if err != nil {
		return row, err
	}
	defer disk.Close()
	row.Disk, row.Bytes = append([]footprint.Use{}, disk.Uses...), disk.Total()
	row.Notes = append(row.Notes, disk.Problems...)
	return row, nil
}

func (r *statusRow) note(err error) {
	if err != nil {
		r.Notes = append(r.Notes, err.Error())
	}
}

// waiting returns the questions that wait for the user.
func (r *statusRow) waiting(s settings.Settings) []inbox.Question {
	waits := []inbox.Question{}
	all, err := openApprovals(s)
	r.note(err)
	defer all.close()
	questions, err := inbox.ListAll(all)
	r.note(err)
	for _, q := range questions {
		if q.State == consent.Pending {
			waits = append(waits, q)
		}
	}
	return waits
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// policyState tells which policy counts, and whether it can be used.
func policyState(s settings.Settings) userFile {
	file, named := s.PolicyFile()
	f := userFile{File: file, Exists: exists(file)}
	if f.Exists || named {
		if err := loadPolicy(s, slog.New(slog.DiscardHandler)).Err(); err != nil {
			f.Error = err.Error()
		}
	}
	return f
}

// configState tells whether there is a file of settings.
func configState() userFile {
	dir := settings.ConfigDir()
	if dir == "" {
		return userFile{}
	}
	file := filepath.Join(dir, "config.toml")
	return userFile{File: file, Exists: exists(file)}
}

// entries returns the entries for toolcell in the clients' files; self is this program. Files that
// cannot be read are among them.
func (f clientFiles) entries(self string) []statusClient {
	rows := []statusClient{}
	for _, file := range f.files {
		row := statusClient{Client: file.in.Client, Title: file.in.Title, File: file.in.File, Project: file.project, Starts: "nothing", Error: file.in.Error}
		if file.has() || file.in.Error != "" {
			row.Starts = "unknown"
		}
		if len(file.entries) == 0 {
			rows = append(rows, row)
		}
		for _, e := range file.entries {
			row.Name, row.Command, row.Starts = e.Name, e.Command, startsOf(e, self)
			rows = append(rows, row)
		}
	}
	for _, c := range f.unreadable {
		rows = append(rows, statusClient{Client: c.Client, Title: c.Title, File: c.File, Starts: "unknown", Error: c.Error})
	}
	return rows
}

// startsOf says what an entry starts: a program that has gone, this one, or another.
func startsOf(e edit.SelfEntry, self string) string {
	switch {
	case e.Path == "":
		return "gone"
	case sameProgram(e.Path, self):
		return "this"
	}
	return "other"
}

// print shows it on one screen.
func (r statusRow) print(o Options) error {
	out := o.Stdout()
	say := func(label, format string, args ...any) {
		fmt.Fprintf(out, "%-10s %s\n", label, console.Plain(fmt.Sprintf(format, args...)))
	}
	fmt.Fprint(out, versionText())
	say("program", "%s", r.Program)
	if r.Stable.Exists && r.Stable.Path != r.Program {
		said := "the same program"
		if !r.Stable.Same {
			said = "another version; toolcell upgrade puts this one there if it is newer"
		}
		say("copy", "%s: %s", r.Stable.Path, said)
	}
	say("policy", "%s", r.Policy.text("none (code may call any server without asking)"))
	say("config", "%s", r.Config.text("none (defaults and variables apply)"))
	say("servers", "%s", r.serversText())
	say("questions", "%s", r.questionsText())
	if err := r.printClients(o); err != nil {
		return err
	}
	if err := r.printRunning(o); err != nil {
		return err
	}
	if err := printDisk(o, r.Disk, r.Bytes); err != nil {
		return err
	}
	for _, n := range r.Notes {
		console.Note(o.Err, n)
	}
	return nil
}

func (f userFile) text(none string) string {
	switch {
	case f.Error != "":
		return f.File + ", which cannot be used: " + f.Error
	case f.Exists:
		return f.File
	case f.File == "":
		return none
	}
	return none + "; it would be " + f.File
}

func (r statusRow) serversText() string {
	var parts []string
	for _, st := range slices.Sorted(maps.Keys(r.Servers)) {
		if st != config.StatusSkipped {
			parts = append(parts, strconv.Itoa(r.Servers[st])+" "+st)
		}
	}
	if n := r.Servers[config.StatusSkipped]; n > 0 {
		parts = append(parts, strconv.Itoa(n)+" left out (toolcell servers list)")
	}
	return cmp.Or(strings.Join(parts, ", "), "none")
}

func (r statusRow) questionsText() string {
	switch n := len(r.Questions); n {
	case 0:
		return "none"
	case 1:
		return "1 is waiting for you: " + console.OneLine(aboutText(r.Questions[0]), descriptionWidth) + " (toolcell approvals list)"
	default:
		return fmt.Sprintf("%d are waiting for you: toolcell approvals list", n)
	}
}

func (r statusRow) printClients(o Options) error {
	if len(r.Clients) == 0 {
		fmt.Fprintf(o.Stdout(), "\nno client has toolcell in its config: toolcell install\n")
		return nil
	}
	fmt.Fprintln(o.Stdout())
	columns := []console.Column{{Name: "CLIENT"}, {Name: "ENTRY"}, {Name: "STARTS"}, {Name: "FILE", End: true}}
	return printRows(o, r.Clients, "", "", columns, func(c statusClient) []string {
		return []string{c.Client, cmp.Or(c.Name, "–"), c.startsText(), c.File}
	})
}

// startsText says in words what an entry starts.
func (c statusClient) startsText() string {
	switch {
	case c.Error != "":
		return "unreadable"
	case c.Starts == "this":
		return "this program"
	case c.Starts == "gone":
		return c.Command + ", which does not exist"
	case c.Starts == "other":
		return c.Command + ", another version"
	case c.Starts == "nothing":
		return "nothing: the entry has gone"
	}
	return "by another program, or switched off"
}

func (r statusRow) printRunning(o Options) error {
	if len(r.Running) == 0 {
		return nil
	}
	fmt.Fprintln(o.Stdout())
	columns := []console.Column{{Name: "PROCESS", Right: true}, {Name: "COMMAND"}, {Name: "STARTED BY"}, {Name: "SINCE"}}
	return printRows(o, r.Running, "", "", columns, func(p runningProcess) []string {
		since := ""
		if !p.Since.IsZero() {
			since = p.Since.Local().Format(time.DateTime)
		}
		return []string{strconv.Itoa(p.PID), p.Command, p.Client, since}
	})
}

// printDisk prints a table of what is on the disk.
func printDisk(o Options, uses []footprint.Use, total int64) error {
	if len(uses) == 0 {
		fmt.Fprintf(o.Stdout(), "\nnothing is on the disk but the program\n")
		return nil
	}
	fmt.Fprintln(o.Stdout())
	return printRows(o, withTotal(uses, total), "", "", diskColumns, diskCells)
}

func withTotal(uses []footprint.Use, total int64) []footprint.Use {
	return append(slices.Clone(uses), footprint.Use{Kind: "total", Bytes: total, Count: -1})
}

var diskColumns = []console.Column{{Name: "ON DISK"}, {Name: "SIZE", Right: true}, {Name: "COUNT", Right: true}, {Name: "FOLDER", End: true}}

func diskCells(u footprint.Use) []string {
	count := ""
	if u.Count >= 0 {
		count = strconv.Itoa(u.Count)
	}
	folder := strings.Join(u.Folders, ", ")
	if u.Kind == footprint.Other {
		folder = ""
	}
	return []string{string(u.Kind), text.Size(u.Bytes), count, folder}
}
