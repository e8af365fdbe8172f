package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/internal/program"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
	"github.com/toolcell/toolcell/mcpproxy/config"
)

// discovered are the user's servers, and the user's decisions about their
// files.
type discovered struct {
	options clientconfig.Options
	trust   clientconfig.Trust
	values  clientconfig.Values
	log     *slog.Logger
	config  config.Config
	watcher *clientconfig.Watcher // nil: the files are read once
}

// discoverForShell is discoverServers for a command that the user of a shell typed: a
// file that the user named must exist. serve starts without it, since clients do not
// show why a server ended, and its log names the file.
func discoverForShell(o Options, log *slog.Logger) (*discovered, error) {
	f := discoverServers(o.Settings, log)
	if file := o.Settings.Servers; file != "" {
		if err := o.Settings.MustExist("servers-config", f.options.Absolute(file)); err != nil {
			return nil, err
		}
	}
	if file, named := o.Settings.PolicyFile(); named {
		return f, o.Settings.MustExist("policy", file)
	}
	return f, nil
}

// askForServers is discoverForShell for a command that starts servers, perhaps those named. It
// asks the user whether a project's file may, and notes what is left out.
func askForServers(ctx context.Context, o Options, log *slog.Logger, named []string) (*discovered, error) {
	f, err := discoverForShell(o, log)
	if err == nil {
		err = f.askTrust(ctx, o.Streams)
	}
	if err != nil {
		return nil, err
	}
	warnOfTypos(log)
	if o.Command != "servers list" && o.Command != "servers check" { // which say it themselves
		f.noteProblems(o, named)
	}
	return f, nil
}

// watchServers is discoverServers for a command that goes on while the files change.
func watchServers(s settings.Settings, log *slog.Logger) *discovered {
	f := newDiscovered(s, log)
	f.watcher = clientconfig.Watch(f.options, f.trust.File(), f.values.File())
	f.config = f.watcher.Config()
	return f
}

// discoverServers reads the config files of all MCP clients.
func discoverServers(s settings.Settings, log *slog.Logger) *discovered {
	f := newDiscovered(s, log)
	f.config = clientconfig.Discover(f.options)
	return f
}

func newDiscovered(s settings.Settings, log *slog.Logger) *discovered {
	home, _ := os.UserHomeDir() // without one there is nothing to find there
	dir, _ := os.Getwd()
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real // trust is kept by path: one for each file
	}
	state := s.Dirs.State
	f := &discovered{trust: clientconfig.NewTrust(state), values: clientconfig.NewValues(state), log: log}
	f.options = clientconfig.Options{
		Home: home, Dir: dir, Extra: s.Servers, AllowSelf: s.AllowSelf, Self: program.Self(),
		Trusted: f.trust.State, Values: f.values.Of,
	}
	return f
}

// logProblems logs the entries left out, with one line for each file that waits
// for trust.
func logProblems(log *slog.Logger, cfg config.Config) {
	for _, p := range cfg.Problems {
		if !p.Skipped && p.Status != config.StatusUntrusted {
			log.Warn(leftOut(p), "reason", p.String())
		}
	}
	for _, p := range cfg.Projects {
		log.Warn("leaving out the servers of a project's file that is not trusted", "file", p.Path,
			"servers", len(p.Starts), "changed", p.Changed, "cure", "read it, then run: toolcell servers trust "+p.Path)
	}
}

func leftOut(p config.Problem) string {
	if p.Server == "" {
		return "leaving out a file"
	}
	return "leaving out a server"
}

// noteProblems prints one line about the servers that are left out, unless the user wants
// quiet or a log. Servers in named are not counted: the command's own error gives the reason.
func (f *discovered) noteProblems(o Options, named []string) {
	if o.Quiet || o.Settings.Typed("log-level") {
		logProblems(f.log, f.config)
		return
	}
	var notes []string
	var files, servers int
	for _, p := range f.config.Problems {
		if p.Skipped || p.Status == config.StatusUntrusted || slices.Contains(named, p.Server) {
			continue
		}
		if p.Server == "" {
			files++
		} else {
			servers++
		}
		notes = append(notes, leftOut(p)+": "+p.String())
	}
	for _, p := range f.config.Projects {
		if slices.ContainsFunc(p.Starts, func(st config.Start) bool { return slices.Contains(named, st.Server) }) {
			continue
		}
		why := "is not trusted"
		if p.Changed {
			why = "has changed since you trusted it"
		}
		servers += len(p.Starts)
		notes = append(notes, fmt.Sprintf("%s %s, so its %s left out; read it, then: toolcell servers trust %s",
			p.Path, why, pluralAre(len(p.Starts), "server"), p.Path))
	}
	switch {
	case len(notes) == 1:
		console.Note(o.Err, notes[0])
	case len(notes) > 1:
		left := text.Plural(files, "file") + " and " + text.Plural(servers, "server") + " are"
		if files == 0 {
			left = pluralAre(servers, "server")
		} else if servers == 0 {
			left = pluralAre(files, "file")
		}
		console.Note(o.Err, left+" left out: toolcell servers list")
	}
}

func pluralAre(n int, what string) string {
	if n == 1 {
		return text.Plural(n, what) + " is"
	}
	return text.Plural(n, what) + " are"
}

// refresh is mcpproxy.Options.Refresh: it follows changes of the config files.
func (f *discovered) refresh(log *slog.Logger) func(update func(config.Config)) {
	if f.watcher == nil {
		return nil
	}
	return func(update func(config.Config)) {
		f.watcher.Refresh(func(c config.Config) {
			log.Info("the config of MCP servers has changed", "servers", len(c.Servers))
			logProblems(log, c)
			update(c)
		})
	}
}

// askTrust asks, once for each file and on a terminal only, whether the files of
// the project may start commands.
func (f *discovered) askTrust(ctx context.Context, s *console.Streams) error {
	if !console.Terminal(s.In) || !console.Terminal(s.Err) {
		return nil
	}
	asked := false
	for _, p := range f.config.Projects {
		if p.Declined {
			continue
		}
		showProject(s.Err, p)
		fmt.Fprint(s.Err, "Allow it? They run in sandboxes that see this project, unless your policy says otherwise. [y/N] ")
		answer, err := console.ReadLine(ctx, s.In)
		if err != nil {
			fmt.Fprintln(s.Err)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			break // the end of the input is no answer
		}
		yes := strings.EqualFold(answer, "y") || strings.EqualFold(answer, "yes")
		if err := f.trust.Set(p.Path, p.Sum, yes); err != nil {
			return fmt.Errorf("keeping the answer: %w", err)
		}
		if !yes {
			fmt.Fprintf(s.Err, "toolcell: its servers are left out; to allow them later: toolcell servers trust %s\n", p.Path)
		}
		asked = true
	}
	if asked {
		f.config = clientconfig.Discover(f.options)
	}
	return nil
}

// showProject prints what a file of a project would start.
func showProject(w io.Writer, p config.Project) {
	how := "This project's file would start commands on your machine"
	if p.Changed {
		how = "This project's file has changed since you trusted it, and would start commands on your machine"
	}
	fmt.Fprintf(w, "%s:\n  %s\n", how, p.Path)
	showStarts(w, p)
}

func showStarts(w io.Writer, p config.Project) {
	for i, start := range p.Starts {
		if i == 50 {
			fmt.Fprintf(w, "    and %d more\n", len(p.Starts)-i)
			break
		}
		name := console.OneLine(start.Server, 60)
		fmt.Fprintf(w, "    %s: %s\n", name, start.Command)
		if start.Replaces != "" {
			fmt.Fprintf(w, "      takes the place of your server %q (%s)\n", name, start.Replaces)
		}
	}
}
