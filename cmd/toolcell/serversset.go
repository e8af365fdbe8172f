package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/mcpproxy/config"
)

type serversSetOptions struct {
	Options
	Remove bool
}

func serversSetCommand(s *console.Streams) *cli.Command {
	return &cli.Command{
		Name: "set", Usage: "store a value, such as a token, that a server's config asks for", ArgsUsage: "NAME INPUT",
		Description: "The value is read from standard input, or asked for on a terminal. It is kept in the state\n" +
			"folder, in a file that only you can read. An environment variable takes precedence over it.",
		Flags: flags(discoverySettings, &cli.BoolFlag{Name: "remove", Usage: "forget the value"}),
		Action: actionWith(s, func(c *cli.Context, o Options) error {
			return serversSet(c.Context, serversSetOptions{o, c.Bool("remove")})
		}),
	}
}

func serversSet(ctx context.Context, o serversSetOptions) error {
	found, err := discoverForShell(o.Options, shellLogger(o.Options))
	if err != nil {
		return err
	}
	in, err := chooseInput(found.config, o.Args[0], strings.Join(o.Args[1:], ""))
	if err != nil {
		return err
	}
	if o.Remove {
		was, err := found.values.Forget(in.Source, in.ID)
		if err == nil && !was {
			err = fmt.Errorf("%q of server %q has no value that was set", in.ID, in.Server)
		}
		if err == nil && o.JSON {
			err = console.PrintJSON(o.Streams, []valueSet{{in.Server, in.ID, in.Source, false}})
		}
		return err
	}
	value, err := readValue(ctx, o.Streams, in)
	if err != nil {
		return err
	}
	if err := found.values.Set(in.Source, in.ID, value); err != nil {
		return fmt.Errorf("keeping the value: %w", err)
	}
	err = printRow(o.Options, valueSet{in.Server, in.ID, in.Source, true}, "set: %s, for %s\n", in.ID, in.Source)
	for _, name := range in.Variables() {
		if os.Getenv(name) != "" {
			fmt.Fprintf(o.Err, "toolcell: note: the variable %s is set too, and goes before it\n", name)
		}
	}
	return err
}

// A valueSet is the row of servers set. The value itself is not shown.
type valueSet struct {
	Server string `json:"server"`
	Input  string `json:"input"`
	Source string `json:"source"`
	Set    bool   `json:"set"`
}

// chooseInput finds the input to set: among those of servers of that name, one
// without a value is preferred. Without an id there must be only one.
func chooseInput(cfg config.Config, server, id string) (config.Input, error) {
	var all []config.Input
	var ids []string
	for _, in := range cfg.Inputs {
		if in.Server != server {
			continue
		}
		if !slices.Contains(ids, in.ID) {
			ids = append(ids, in.ID)
		}
		if id == "" || in.ID == id {
			all = append(all, in)
		}
	}
	switch {
	case len(ids) == 0:
		what := fmt.Sprintf("there is no server %q", server)
		if slices.ContainsFunc(cfg.Servers, func(s config.Server) bool { return s.Name == server }) {
			what = fmt.Sprintf("server %q asks for no value", server)
		}
		return config.Input{}, errors.New(what + "; see: toolcell servers list")
	case len(all) == 0:
		return config.Input{}, fmt.Errorf("server %q names no %q; it names %s", server, id, strings.Join(ids, ", "))
	case id == "" && len(ids) > 1:
		return config.Input{}, console.Invalidf("say which of %s to set for server %q", strings.Join(ids, ", "), server)
	}
	return all[max(0, slices.IndexFunc(all, func(in config.Input) bool { return !in.Set }))], nil
}

// readValue asks for a value. A secret is not shown.
func readValue(ctx context.Context, s *console.Streams, in config.Input) (value string, err error) {
	if console.Terminal(s.In) && console.Terminal(s.Err) {
		value, err = askValue(ctx, s, in)
	} else {
		var all []byte
		all, err = io.ReadAll(io.LimitReader(s.In, console.MaxTyped+1))
		value = strings.TrimSuffix(strings.TrimSuffix(string(all), "\n"), "\r")
	}
	switch {
	case err != nil:
		return "", fmt.Errorf("reading the value: %w", err)
	case value == "":
		return "", errors.New("the value is empty; nothing was set")
	case len(value) > console.MaxTyped:
		return "", fmt.Errorf("the value has more than %d bytes", console.MaxTyped)
	case strings.ContainsRune(value, 0):
		return "", errors.New("the value has a NUL character in it, which no variable can have")
	case len(in.Options) > 0 && !slices.Contains(in.Options, value):
		return "", fmt.Errorf("%q must be one of %s", in.ID, strings.Join(in.Options, ", "))
	}
	return value, nil
}

func askValue(ctx context.Context, s *console.Streams, in config.Input) (string, error) {
	prompt := console.OneLine(in.ID, 100)
	if in.Description != "" {
		prompt = console.OneLine(in.Description, 200) + " (" + prompt + ")"
	}
	if len(in.Options) > 0 {
		prompt += ", one of " + console.OneLine(strings.Join(in.Options, ", "), 300)
	}
	if in.Default != "" {
		prompt += " [" + console.OneLine(in.Default, 100) + "]"
	}
	value, err := askLine(ctx, s, prompt, in.Secret)
	if value == "" && err == nil {
		value = in.Default
	}
	return value, err
}

// askLine reads a line behind a prompt, and does not show it if it is secret.
func askLine(ctx context.Context, s *console.Streams, prompt string, secret bool) (string, error) {
	if secret { // before anything can be typed
		show, err := hideTyping(s)
		if err != nil {
			return "", err
		}
		defer show()
	}
	fmt.Fprint(s.Err, prompt+": ")
	return console.ReadLine(ctx, s.In)
}

// hideTyping turns off the terminal's echo until show is called. Show also ends the line,
// whose end was not echoed.
func hideTyping(s *console.Streams) (show func(), err error) {
	fd := int(s.In.Fd())
	was, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return nil, fmt.Errorf("hiding what is typed: %w", err)
	}
	hidden := *was
	hidden.Lflag &^= unix.ECHO
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, &hidden); err != nil {
		return nil, fmt.Errorf("hiding what is typed: %w", err)
	}
	return func() {
		_ = unix.IoctlSetTermios(fd, unix.TCSETS, was)
		fmt.Fprintln(s.Err)
	}, nil
}
