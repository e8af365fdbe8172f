package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/mcpproxy/discovery"
	"github.com/toolcell/toolcell/mcpproxy/install"
	"github.com/urfave/cli/v2"
)

func installCommand(s *console.Streams) *cli.Command {
	flags := []cli.Flag{
		&cli.BoolFlag{Name: "list", Usage: "show the clients that are known, their files, and which have toolcell"},
		&cli.BoolFlag{Name: "json", Usage: "print the list as JSON"},
		&cli.BoolFlag{Name: "project", Usage: "the client's file in this project instead of yours"},
		&cli.StringFlag{Name: "name", Usage: "`NAME` of the entry (default: toolcell)"},
		&cli.StringSliceFlag{Name: "env", Usage: "`KEY=VALUE` that the client is to start toolcell with, such as MCP_BRIDGE_IMAGE=python:3.13; may be repeated"},
		&cli.BoolFlag{Name: "move-servers", Usage: "move the client's other servers behind toolcell, which saves their tokens"},
		&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "move them without asking"},
		&cli.BoolFlag{Name: "print", Usage: "only print the entry, to be put in by hand"},
		&cli.BoolFlag{Name: "dry-run", Usage: "only show what would change"},
		&cli.BoolFlag{Name: "undo", Usage: "take the entry out again, and put back what was moved"},
	}
	return &cli.Command{
		Name: "install", Usage: "put toolcell into the config of an MCP client", ArgsUsage: "CLIENT",
		Description: "Clients: " + strings.Join(clientNames(), ", ") + ".\n\n" +
			"The file keeps its comments, order and form; what it was before is kept beside it. A file that\n" +
			"cannot be read is left alone.",
		Flags: append(flags, settings.Flags(discoverySettings...)...), OnUsageError: usageError,
		Action: func(c *cli.Context) error {
			if c.Bool("undo") {
				return uninstall(c, s)
			}
			return installEntry(c, s)
		},
	}
}

func uninstallCommand(s *console.Streams) *cli.Command {
	flags := []cli.Flag{
		&cli.BoolFlag{Name: "project", Usage: "the client's file in this project instead of yours"},
		&cli.StringFlag{Name: "name", Usage: "`NAME` of the entry, if there are several"},
		&cli.BoolFlag{Name: "dry-run", Usage: "only show what would change"},
	}
	return &cli.Command{
		Name: "uninstall", Usage: "take toolcell out of the config of an MCP client, and put back what was moved", ArgsUsage: "CLIENT",
		Flags: append(flags, settings.Flags(discoverySettings...)...), OnUsageError: usageError,
		Action: func(c *cli.Context) error { return uninstall(c, s) },
	}
}

func clientNames() (names []string) {
	for _, p := range install.Targets(discovery.Options{Home: "/", Dir: "/"}) {
		names = append(names, p.Client)
	}
	return names
}

// An installer is one client's file, and what there is to know to change it.
type installer struct {
	c        *cli.Context
	s        *console.Streams
	settings settings.Settings
	found    *findings
	installs install.Journal
	place    install.Target
	file     *editedFile
}

// newInstaller finds and reads the file that the command line means.
func newInstaller(c *cli.Context, s *console.Streams) (*installer, error) {
	if c.NArg() != 1 {
		return nil, console.Usagef("%s takes one client: %s", c.Command.Name, strings.Join(clientNames(), ", "))
	}
	conf, err := settings.Read(c)
	if err != nil {
		return nil, err
	}
	d, err := settings.FindDirs(conf.StateDir)
	if err != nil {
		return nil, err
	}
	i := &installer{c: c, s: s, settings: conf, installs: install.NewJournal(d.State)}
	if i.found, err = findServers(conf, newLogger(conf, s.Err)); err != nil {
		return nil, err
	}
	if i.place, err = install.TargetOf(i.found.options, c.Args().First(), c.Bool("project")); err != nil {
		return nil, &console.ExitError{Code: console.ExitUsage, Err: err}
	}
	i.file, err = openEdited(i.place.File)
	return i, err
}

// installEntry is the story of the command.
func installEntry(c *cli.Context, s *console.Streams) error {
	if c.Bool("list") {
		return listClients(c, s)
	}
	i, err := newInstaller(c, s)
	if err != nil {
		return err
	}
	self, err := i.self()
	if err != nil {
		return err
	}
	if c.Bool("print") {
		return i.print(self)
	}
	text, put, err := i.place.Install(i.file.before, self)
	if err != nil {
		return fmt.Errorf("%s %w", i.place.File, err)
	}
	i.file.after = text
	change := &change{installer: i, put: put, entry: self.Command + " serve"}
	if c.Bool("move-servers") {
		if err := change.plan(); err != nil {
			return err
		}
	}
	if c.Bool("dry-run") {
		return change.show(s.Out)
	}
	if len(change.move.Servers) > 0 {
		if err := change.confirm(); err != nil {
			return err
		}
	}
	if err := change.write(); err != nil {
		return err
	}
	change.tell(s.Out)
	return nil
}

func (i *installer) print(self install.Entry) error {
	text, err := i.place.Example(self)
	if err != nil {
		return err
	}
	fmt.Fprintf(i.s.Err, "toolcell: for %s, in %s:\n", i.place.Title, i.place.File)
	_, err = io.WriteString(i.s.Out, text)
	return err
}

// self is how a client is to start this program. Clients pass few variables on
// and have another PATH, so the command is a whole path, and what says where
// files are goes along.
func (i *installer) self() (install.Entry, error) {
	self := install.Entry{Name: i.c.String("name"), Env: map[string]string{}}
	var err error
	if self.Command, err = lastingPath(); err != nil {
		return self, err
	}
	for _, name := range []string{"XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"} {
		if v := os.Getenv(name); filepath.IsAbs(v) {
			self.Env[name] = v
		}
	}
	for _, pair := range i.c.StringSlice("env") {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" || strings.ContainsAny(name, " \t\n\x00") || strings.ContainsRune(value, 0) {
			return self, console.Usagef("--env %q is not KEY=VALUE", pair)
		}
		if err := settings.Check(name, value); err != nil {
			return self, err
		}
		self.Env[name] = value
	}
	for _, k := range settings.All {
		if _, given := self.Env[k.Env]; os.Getenv(k.Env) != "" && !given {
			fmt.Fprintf(i.s.Err, "toolcell: note: %s is set here, and the client will not see it: add --env %s=… if it is to hold there\n", k.Env, k.Env)
		}
	}
	return self, nil
}

// lastingPath is a path of this program that will be there tomorrow. The name
// in PATH goes before what it links to: packages replace the latter.
func lastingPath() (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding this program: %w", err)
	}
	for dir := filepath.Dir(exe); dir != "/"; dir = filepath.Dir(dir) {
		if strings.HasPrefix(filepath.Base(dir), "go-build") {
			return "", errors.New("this program runs from a temporary folder, as go run makes them, so no client could start it later; install it first: make install, or go install")
		}
	}
	if known, err := exec.LookPath("toolcell"); err == nil && filepath.IsAbs(known) {
		if a, err := os.Stat(known); err == nil {
			if b, err := os.Stat(exe); err == nil && os.SameFile(a, b) {
				return known, nil
			}
		}
	}
	return exe, nil
}

// A clientRow is a row of install --list.
type clientRow struct {
	Client  string `json:"client"`
	Title   string `json:"title"`
	File    string `json:"file"`
	Status  string `json:"status"` // installed, not installed, no file, or unreadable
	Servers int    `json:"servers"`
	Error   string `json:"error,omitempty"`
}

func listClients(c *cli.Context, s *console.Streams) error {
	settings, err := settings.Read(c)
	if err != nil {
		return err
	}
	found, err := findServers(settings, newLogger(settings, s.Err))
	if err != nil {
		return err
	}
	var rows []clientRow
	for _, p := range install.Targets(found.options) {
		rows = append(rows, rowOf(p))
	}
	if c.Bool("json") {
		return console.PrintJSON(s.Out, rows)
	}
	var cells [][]string
	for _, r := range rows {
		cells = append(cells, []string{r.Client, strings.TrimSuffix(r.Status+": "+r.Error, ": "), strconv.Itoa(r.Servers), r.File})
	}
	return console.PrintTable(s.Out, []console.Column{{Name: "CLIENT"}, {Name: "STATUS"}, {Name: "OTHER SERVERS", Right: true}, {Name: "FILE", End: true}}, cells)
}

func rowOf(p install.Target) clientRow {
	r := clientRow{Client: p.Client, Title: p.Title, File: p.File, Status: "not installed"}
	file, err := openEdited(p.File)
	var name string
	if err == nil {
		name, r.Servers, err = p.Others(file.before)
	}
	switch {
	case err != nil:
		r.Status, r.Error = "unreadable", err.Error()
	case file.mode == 0:
		r.Status = "no file"
	case name != "":
		r.Status = "installed"
	}
	return r
}
