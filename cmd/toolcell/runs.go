package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/toolcell/toolcell/bridge/record/history"
	"github.com/toolcell/toolcell/bridge/run"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/internal/pyname"
	"github.com/toolcell/toolcell/mcpproxy/policy"
)

type runsOptions struct {
	Options
	record *history.Record

	Since, Until, Status, Client, Server, Tool string // which runs
	Writes                                     bool

	Limit       int    // of list
	Calls       bool   // of list
	Values      bool   // of show and export
	Format      string // of export
	Head        string // of verify
	Yes, DryRun bool   // of forget
}

// valueSettings are those of commands that print values: the policy says which servers are private.
var valueSettings = append(slices.Clone(stateSettings), "policy")

func runsCommand(s *console.Streams) *cli.Command {
	action := func(do func(context.Context, runsOptions) error) cli.ActionFunc {
		return actionWith(s, func(c *cli.Context, o Options) error {
			if err := needValues(c, "since", "until", "status", "client", "server", "tool", "format", "head"); err != nil {
				return err
			}
			options := runsOptions{
				Options: o, record: o.history(), Since: c.String("since"), Until: c.String("until"), Status: c.String("status"), Client: c.String("client"),
				Server: c.String("server"), Tool: c.String("tool"), Writes: c.Bool("writes"), Limit: c.Int("limit"), Calls: c.Bool("calls"), Values: c.Bool("values"),
				Format: c.String("format"), Head: c.String("head"), Yes: c.Bool("yes"), DryRun: c.Bool("dry-run"),
			}
			defer options.noteNewer()
			return do(c.Context, options)
		})
	}
	list := action(runsList)
	limit := &cli.IntFlag{Name: "limit", Aliases: []string{"n"}, Value: 20, Usage: "list at most `N` runs; 0 for all"}
	calls := &cli.BoolFlag{Name: "calls", Usage: "list the calls of these runs, with what allowed each"}
	jsonLines := &cli.BoolFlag{Name: "json", Usage: "print a line of JSON for each entry"}
	return &cli.Command{
		Name: "runs", Usage: "show what code did: the record of all runs",
		Description: "The record has what code ran for which client, each call with who allowed it and what\n" +
			"became of it, and how the run ended. The beginning of an ID is enough. Without a command\n" +
			"it is runs list.",
		Flags: flags(valueSettings, append(runFilters(), calls, limit)...),
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return needSubcommand(c)
			}
			return list(c)
		},
		Subcommands: []*cli.Command{
			command("list", "list runs, the newest first", "", valueSettings, list, append(runFilters(), calls, limit)...),
			command("show", "show what a run did, the newest one unless an ID says otherwise", "[ID]", valueSettings, action(runsShow), valuesFlag()),
			command("follow", "print runs and their calls as they come", "", stateSettings, action(runsFollow), jsonLines),
			command("stats", "count calls, errors, times and sizes by server and tool", "", stateSettings, action(runsStats), runFilters()...),
			{
				Name: "export", Usage: "print the record of runs for other programs", Action: action(runsExport),
				Flags: append(append(runFilters(), formatFlag(), valuesFlag()), settings.Flags(valueSettings...)...),
			},
			command("verify", "check that the record is as it was written", "", stateSettings, action(runsVerify),
				&cli.StringFlag{Name: "head", Usage: "compare with hashes that toolcell runs head has printed to `FILE`"}),
			command("head", "print the last hash of each file, to keep elsewhere", "", stateSettings, action(runsHead)),
			command("forget", "remove the values of runs: code, arguments, output", "ID…", stateSettings, action(runsForget),
				&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "remove them without asking"},
				&cli.BoolFlag{Name: "dry-run", Usage: "only show what would be removed"}),
		},
	}
}

// needValues refuses flags with an empty value, as of a variable of a script that is not set: it would
// count as no filter.
func needValues(c *cli.Context, names ...string) error {
	for _, name := range names {
		if c.IsSet(name) && c.String(name) == "" {
			return console.Invalidf("--%s needs a value", name)
		}
	}
	return nil
}

func valuesFlag() cli.Flag {
	return &cli.BoolFlag{Name: "values", Usage: "print values in full, also those of private servers where there is no terminal"}
}

// runFilters are the flags that say which runs are wanted.
func runFilters() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "since", Usage: "runs from `TIME` on: 2h (ago), yesterday, 2026-11-27, RFC 3339"},
		&cli.StringFlag{Name: "until", Usage: "runs before `TIME`, or up to the end of that day"},
		&cli.StringFlag{Name: "status", Usage: "runs with a `STATUS` such as error, running or killed"},
		&cli.StringFlag{Name: "client", Usage: "runs of clients with `NAME` in theirs, or of exec"},
		&cli.StringFlag{Name: "server", Usage: "runs that called the server `NAME`"},
		&cli.StringFlag{Name: "tool", Usage: "runs that called the tool `NAME`, or SERVER.TOOL"},
		&cli.BoolFlag{Name: "writes", Usage: "runs, or calls, that may have changed something"},
	}
}

// runStatuses are the statuses that runs on record have.
var runStatuses = []string{
	run.StatusSuccess, run.StatusError, run.StatusTimeout, run.StatusMemory, run.StatusCancelled, run.StatusValidation, run.StatusSandbox,
	run.StatusRecord, history.StatusRunning, history.StatusWaiting, history.StatusKilled, history.StatusIncomplete,
}

// filter reads the flags.
func (o runsOptions) filter(now time.Time) (f history.Filter, err error) {
	f = history.Filter{Status: o.Status, Client: o.Client, Server: o.Server, Tool: o.Tool, Writes: o.Writes}
	if o.Status != "" && !slices.Contains(runStatuses, o.Status) {
		return f, console.Invalidf("--status: there is no status %q; there are %s", o.Status, strings.Join(runStatuses, ", "))
	}
	if o.Since != "" {
		if f.From, _, err = parseWhen(o.Since, now); err != nil {
			return f, console.Invalidf("--since: %w", err)
		}
	}
	if o.Until != "" {
		if _, f.To, err = parseWhen(o.Until, now); err != nil {
			return f, console.Invalidf("--until: %w", err)
		}
	}
	if !f.From.IsZero() && !f.To.IsZero() && !f.From.Before(f.To) {
		return f, console.Invalidf("--until %s is not after --since %s", o.Until, o.Since)
	}
	return f, nil
}

// filtered reports whether the flags leave out any runs.
func (o runsOptions) filtered() bool {
	return o.Since != "" || o.Until != "" || o.Status != "" || o.Client != "" || o.Server != "" || o.Tool != "" || o.Writes
}

// history returns the record of the user's runs.
func (o Options) history() *history.Record { return history.Open(recordDir(o.Settings)) }

// resolve returns the run that an ID, or its beginning, is of.
func (o runsOptions) resolve(r *history.Record, id string) (history.Run, error) {
	entries, err := r.Show(id)
	switch _, ambiguous := errors.AsType[*history.AmbiguousError](err); {
	case errors.Is(err, history.ErrNoRun):
		return history.Run{}, fmt.Errorf("there is no run %q on record; toolcell runs list shows them", id)
	case ambiguous:
		return history.Run{}, fmt.Errorf("%w; give more of it", err)
	case err != nil:
		return history.Run{}, o.Settings.Dirs.Explain(err)
	}
	return r.RunOf(entries)
}

// privateServers returns a function that reports whether the values of a server are private by the
// policy as it is now. They all are if it cannot be read.
func privateServers(o Options) func(server string) bool {
	rules := loadPolicy(o.Settings, shellLogger(o)).NewEnforcer()
	known := map[string]bool{}
	return func(server string) bool {
		private, ok := known[server]
		if !ok {
			private, _ = rules.Flow(policy.Server{Name: server, Alias: pyname.Server(server, map[string]bool{})})
			known[server] = private
		}
		return private
	}
}
