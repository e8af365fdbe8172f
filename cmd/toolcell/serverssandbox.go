package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/toolcell/toolcell/bridge/sandboxed"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/sandboxes"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/policy"
	"github.com/toolcell/toolcell/mcpproxy/rights"
	"github.com/toolcell/toolcell/mcpproxy/transport/stdio"
	"github.com/toolcell/toolcell/oci/homes"
)

type serversSandboxOptions struct {
	Options
	EmptyHome, Yes, Write bool
}

func serversSandboxCommand(s *console.Streams) *cli.Command {
	return &cli.Command{
		Name: "sandbox", Usage: "try a server in a sandbox, and propose a section of the policy for it", ArgsUsage: "NAME",
		Description: "The server is started in a sandbox, whatever the policy says, with what its section gives it and\n" +
			"otherwise with nothing. You see whether it works, which hosts it was refused and what it wrote, and\n" +
			"the section with which it may work. The policy is not changed, unless you add --write and answer\n" +
			"the question.",
		Flags: flags(sandboxSettings, jsonFlag(),
			&cli.BoolFlag{Name: "write", Usage: "ask on the terminal, and then add the section to the policy"},
			&cli.BoolFlag{Name: "empty-home", Usage: "only remove all that the server keeps in its HOME in sandboxes"},
			&cli.BoolFlag{Name: "yes", Usage: "remove it without a question"}),
		Action: actionWith(s, func(c *cli.Context, o Options) error {
			sandbox := serversSandboxOptions{o, c.Bool("empty-home"), c.Bool("yes"), c.Bool("write")}
			switch {
			case sandbox.Write && (sandbox.EmptyHome || sandbox.Yes):
				return console.Usagef("--write asks, and goes with neither --empty-home nor --yes")
			case sandbox.Write && (o.JSON || !console.Terminal(o.In) || !console.Terminal(o.Err)):
				return console.Usagef("--write asks before it writes, which needs a terminal, and no --json")
			case sandbox.EmptyHome:
				return sandbox.emptyHome(c.Context)
			case sandbox.Yes:
				return console.Usagef("--yes is for --empty-home; a try asks nothing")
			}
			return sandbox.try(c.Context)
		}),
	}
}

// A triedServer is the row of servers sandbox.
type triedServer struct {
	Server  string             `json:"server"`
	Works   bool               `json:"works"`
	Tools   int                `json:"tools"`
	Millis  int64              `json:"ms"` // until its tools were known
	Error   string             `json:"error,omitempty"`
	OnHost  string             `json:"onHost,omitempty"` // why it has to stay on the host
	Command *sandboxes.Meaning `json:"command,omitempty"`
	Rights  []string           `json:"rights"` // that it had
	Refused []refusedHost      `json:"refused"`
	Stderr  []string           `json:"stderr"`
	Home    string             `json:"home"`
	Bytes   int64              `json:"homeBytes"`
	File    string             `json:"file"`    // that the section is for
	Section string             `json:"section"` // "" if no sandbox can run its command

	launched bool // its command was started
	has      bool // the policy has a section of it that gives it something
	complete bool // and has all that Section has
}

// A refusedHost is one that the server tried to reach.
type refusedHost struct {
	Host   string `json:"host"`
	Reason string `json:"reason"`
}

func (o serversSandboxOptions) try(ctx context.Context) (err error) {
	log := shellLogger(o.Options)
	found, err := askForServers(ctx, o.Options, log, o.Args)
	if err != nil {
		return err
	}
	server, err := findServer(found.config, o.Args[0])
	if err == nil && server.Transport != config.Stdio {
		err = errors.New("it is reached at an address, and toolcell does not start it")
	}
	if err != nil {
		return fmt.Errorf("trying %q in a sandbox: %w", text.Printable(o.Args[0], 200), err)
	}
	t := &trial{server: server, launcher: launcherFor(o.Settings, log)}
	defer func() { err = errors.Join(err, t.launcher.Close()) }()
	if err := t.prepare(o.Options); err != nil {
		return err
	}
	row := t.run(ctx, o.Options)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	row.File, _ = o.Settings.PolicyFile()
	if o.JSON {
		err = console.PrintJSON(o.Streams, []*triedServer{row})
	} else {
		row.print(o.Streams)
	}
	if err == nil && o.Write {
		err = o.write(ctx, row)
	}
	if err == nil && !row.Works {
		err = &console.ExitError{Code: console.ExitFail} // it is shown why
	}
	return err
}

// A trial starts one server in a sandbox, whatever the policy says.
type trial struct {
	server   config.Server
	launcher *serverLauncher
	says     *policy.Sandbox // by the policy
	box      *policy.Sandbox // of the trial

	mu       sync.Mutex
	launched []*stdio.Launched
}

// prepare decides what the server gets. A trial accepts no rights: without those that were not accepted
// it may run.
func (t *trial) prepare(o Options) (err error) {
	if t.says, err = t.launcher.box(t.server); err != nil {
		return err
	}
	t.box = t.says.ForTry(true)
	err = t.launcher.rights.Allowed(t.server, t.box)
	if changed, ok := errors.AsType[*rights.ChangedError](err); ok {
		console.Note(o.Err, changed.Error()+"; until then it is tried without that")
		t.box, err = t.says.ForTry(false), nil
	}
	return err
}

// launch is what the proxy starts the server by.
func (t *trial) launch(config.Server) (stdio.Launcher, error) {
	start := t.launcher.in(t.box)
	return func(ctx context.Context, s config.Server) (*stdio.Launched, error) {
		l, err := start(ctx, s)
		if err == nil {
			t.mu.Lock()
			t.launched = append(t.launched, l)
			t.mu.Unlock()
		}
		return l, err
	}, nil
}

// run starts the server, asks for its tools, and ends it. Nothing of it is kept for other commands: its
// tools may be others in a sandbox.
func (t *trial) run(ctx context.Context, o Options) *triedServer {
	progress := console.NewProgress(o.Err, o.JSON)
	defer progress.Close()
	progress.Show("starting " + text.Visible(t.server.Name) + " in a sandbox")
	options := proxyOptions(o.Settings, t.launcher.log)
	options.CatalogDir, options.PinDir, options.Launch = "", "", t.launch
	p := mcpproxy.New(config.Config{Servers: []config.Server{t.server}}, options)
	row := &triedServer{Server: t.server.Name, Rights: append([]string{}, rights.Of(t.server, t.box)...), Refused: []refusedHost{}, Stderr: []string{}}
	began := time.Now()
	tools, err := p.Refresh(ctx, t.server.Name)
	row.Tools, row.Millis, row.Works = len(tools), time.Since(began).Milliseconds(), err == nil
	if err != nil {
		_, reason := mcpproxy.Reason(err)
		row.Error = reason.Error()
	}
	if said, ok := p.ServerLog(t.server.Name); ok {
		row.Stderr = append(row.Stderr, said.Lines[max(0, len(said.Lines)-outputLines):]...)
	}
	if err := p.Close(); err != nil {
		console.Note(o.Err, err.Error())
	}
	t.addProposal(row)
	t.addMeaning(ctx, o, row)
	t.addHome(ctx, o, row)
	return row
}

// addProposal adds what was refused, and the section that would allow it.
func (t *trial) addProposal(row *triedServer) {
	var wanted []string
	for _, l := range t.launched {
		for _, r := range sandboxed.Refused(l) {
			if slices.ContainsFunc(row.Refused, func(known refusedHost) bool { return known.Host == r.Host }) {
				continue
			}
			row.Refused = append(row.Refused, refusedHost{r.Host, r.Reason})
			if r.Unlisted {
				wanted = append(wanted, r.Host)
			}
		}
	}
	proposal := sandboxed.Propose(t.server, wanted)
	if slices.ContainsFunc(row.Stderr, func(line string) bool { return strings.HasPrefix(line, "toolcell: running "+t.server.Command+": ") }) {
		proposal.NoteMissing(t.server.Command)
	}
	row.OnHost, row.Section, row.has, row.launched = proposal.OnHost, proposal.Section(t.says), t.says.Section != "", len(t.launched) > 0
	if row.OnHost != "" {
		row.complete = t.says.Mode == policy.SandboxOff
		return
	}
	had, _ := t.says.SectionWith(nil, nil, nil)
	row.complete = t.says.Mode == policy.SandboxOn && row.Section == had
}

// addMeaning adds what the command starts, if it could be prepared.
func (t *trial) addMeaning(ctx context.Context, o Options, row *triedServer) {
	if len(t.launched) == 0 {
		return
	}
	parts, err := t.launcher.open()
	if err != nil {
		return // the error of the start
	}
	meaning, err := parts.servers.Meaning(ctx, t.server, t.box)
	if err != nil {
		console.Note(o.Err, err.Error())
		return
	}
	row.Command = &meaning
}

// addHome adds where the server's HOME is.
func (t *trial) addHome(ctx context.Context, o Options, row *triedServer) {
	row.Home = homeOf(o, t.server.Name)
	store, err := newOwnedHomes(o.Settings).store()
	if err == nil {
		var use homes.Use
		if use, err = store.Size(ctx, t.server.Name, 0); err == nil {
			row.Bytes = use.Bytes
		}
	}
	if err != nil {
		console.Note(o.Err, err.Error())
	}
}

func homeOf(o Options, server string) string {
	return filepath.Join(o.Settings.Dirs.Homes(), homes.FolderOf(server))
}

// print prints the row. Much of it is from the server.
func (row *triedServer) print(s *console.Streams) {
	out, name := s.Stdout(), text.Visible(row.Server)
	if row.Works {
		fmt.Fprintf(out, "%s works in a sandbox: %s, known after %d ms\n", name, text.Plural(row.Tools, "tool"), row.Millis)
	} else {
		fmt.Fprintf(out, "%s does not work in a sandbox: %s\n", name, remarkLine(row.Error))
	}
	if row.Command != nil {
		fmt.Fprintf(out, "command: %s\n", console.OneLine(row.Command.String(), maxRemark))
	}
	for _, right := range row.Rights {
		fmt.Fprintf(out, "it had: %s\n", right)
	}
	for _, r := range row.Refused {
		fmt.Fprintf(out, "refused: %s\n", console.OneLine(r.Host, 260))
	}
	if row.launched || row.Bytes > 0 {
		fmt.Fprintf(out, "HOME: %s, in %s\n", text.Size(row.Bytes), console.Plain(row.Home))
	}
	if len(row.Stderr) > 0 {
		fmt.Fprintf(out, "The end of what it wrote to stderr:\n  %s\n", console.PlainText(strings.Join(row.Stderr, "\n  ")))
	}
	row.printSection(s)
}

// printSection prints the section that is proposed, or why there is none.
func (row *triedServer) printSection(s *console.Streams) {
	out, file := s.Stdout(), console.Plain(row.File)
	if row.OnHost != "" {
		fmt.Fprintf(out, "\nIt has to stay on the host, where it has all your rights: %s.\n", console.OneLine(row.OnHost, maxRemark))
	}
	switch {
	case row.OnHost != "" && row.complete:
		fmt.Fprintf(out, "The policy %s says so.\n", file)
		return
	case row.OnHost != "":
		fmt.Fprintf(out, "This in %s keeps it there, if you trust it:\n", file)
	case row.Section == "":
		fmt.Fprintln(out, "\nNo section is proposed before its command is changed. Until then it runs only on the host, where it has all your rights.")
		return
	case row.complete:
		fmt.Fprintf(out, "\nIts section in %s has all that is known to be needed.\n", file)
		return
	case row.has:
		fmt.Fprintf(out, "\nThese keys of its section in %s have been added to. Read them before you paste them:\n", file)
	default:
		fmt.Fprintf(out, "\nA section for %s. Read it before you paste it:\n", file)
	}
	fmt.Fprintf(out, "\n%s", console.PlainText(row.Section))
}

// write adds the section that was printed to the policy, if the user wants that. Part of it is from a server,
// so nothing may stand in it that was not shown.
func (o serversSandboxOptions) write(ctx context.Context, row *triedServer) error {
	if row.complete || row.Section == "" {
		return nil // which was said
	}
	if console.PlainText(row.Section) != row.Section {
		return errors.New("nothing was written: the section has characters that cannot be shown")
	}
	file := console.Plain(row.File)
	if err := confirm(ctx, o.Options, fmt.Sprintf("Add this at the end of %s?", file), "nothing was written"); err != nil {
		return err
	}
	err := settings.ChangeFile(ctx, row.File, func(path string, data []byte) ([]byte, error) { return withSection(path, data, row.Section) })
	if err == nil {
		fmt.Fprintf(o.Stdout(), "written: %s; the server has it from its next start on\n", file)
	}
	return err
}

// withSection returns a policy with one more section. A section of the server that is there already makes it
// one that is not understood.
func withSection(path string, data []byte, section string) ([]byte, error) {
	if err := policy.Parse(data, path).Err(); err != nil {
		return nil, err
	}
	after := section
	if before := strings.TrimRight(string(data), "\n"); before != "" {
		after = before + "\n\n" + section
	}
	if err := policy.Parse([]byte(after), path).Err(); err != nil {
		return nil, fmt.Errorf("it may have a section of this server, which is not overwritten; add the keys there: %w", err)
	}
	return []byte(after), nil
}

// An emptiedHome is the row of servers sandbox --empty-home.
type emptiedHome struct {
	Server  string `json:"server"`
	Home    string `json:"home"`
	Bytes   int64  `json:"homeBytes"` // that were there
	Removed bool   `json:"removed"`
}

// emptyHome removes the folder that a server has as HOME, also of one that is configured no more.
func (o serversSandboxOptions) emptyHome(ctx context.Context) error {
	name := o.Args[0]
	store, err := newOwnedHomes(o.Settings).store()
	if err != nil {
		return err
	}
	have, err := store.List()
	if err != nil {
		return err
	}
	if !slices.Contains(have, name) { // it may be the alias
		if found, err := discoverForShell(o.Options, shellLogger(o.Options)); err == nil {
			if server, err := findServer(found.config, name); err == nil {
				name = server.Name
			}
		}
	}
	row := emptiedHome{Server: name, Home: homeOf(o.Options, name)}
	if !slices.Contains(have, name) {
		return printRow(o.Options, row, "nothing to do: a server %s keeps nothing here\n", text.Visible(name))
	}
	// Another server could get the user ID of one that runs, and with it what that one still reaches.
	if err := o.refuseWhileRunning(); err != nil {
		return err
	}
	use, err := store.Size(ctx, name, 0)
	if err != nil {
		return err
	}
	row.Bytes = use.Bytes
	if !o.Yes {
		if err := confirm(ctx, o.Options, fmt.Sprintf("Remove %s that the server %s keeps in %s?", text.Size(use.Bytes), text.Visible(name), console.Plain(row.Home)), "nothing was removed"); err != nil {
			return err
		}
	}
	if err := store.Remove(ctx, name); err != nil {
		return err
	}
	row.Removed = true
	return printRow(o.Options, row, "removed: %s, with %s\n", console.Plain(row.Home), text.Size(use.Bytes))
}

// refuseWhileRunning returns an error while a toolcell runs that may have started the server.
func (o serversSandboxOptions) refuseWhileRunning() error {
	running, err := runningProcesses(o.Settings)
	if err != nil {
		return o.Settings.Dirs.Explain(err)
	}
	var names []string
	for _, r := range running {
		if r.Command != backgroundCommand {
			names = append(names, r.String())
		}
	}
	if len(names) > 0 {
		return fmt.Errorf("nothing was removed: %s, and may have started the server; quit the client, or end it", stillRunning(names))
	}
	return nil
}
