package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"sync/atomic"

	"github.com/urfave/cli/v2"

	"github.com/toolcell/toolcell/bridge/artifacts"
	"github.com/toolcell/toolcell/bridge/consent/inbox"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/page"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/timeline"
	"github.com/toolcell/toolcell/internal/contain"
)

type uiOptions struct {
	Options
	Values bool
	again  func() (Options, error) // with the settings as they are now

	policySeen *atomic.Int64 // when the policy file was last there, in nanoseconds since 1970; 0 if it never was
}

// uiName is the command that goes on with a mistake in a setting that is not among uiSettings.
const uiName = "ui"

// uiSettings are those without which the page would be of other files, or show what is private. The others
// say what a sandbox needs: the page of it says that one has a mistake.
var uiSettings = []string{"state-dir", "policy", "servers-config", "allow-self-server"}

func uiCommand(s *console.Streams) *cli.Command {
	action := actionWith(s, func(c *cli.Context, o Options) error {
		return serveUI(c.Context, uiOptions{Options: o, Values: c.Bool("values"), again: func() (Options, error) { return o.withSettings(c) }, policySeen: &atomic.Int64{}})
	})
	return &cli.Command{
		Name: uiName, Usage: "show on a local page what waits for you, what code did and what it may use, and answer there",
		Description: "It prints a link, which a browser can open once. To approve, you type a code on the page\n" +
			"that is shown at this terminal, so that a program that steers the browser cannot.",
		Flags:  append([]cli.Flag{&cli.BoolFlag{Name: "values", Usage: "show values of private servers, too"}}, settings.Flags(doctorSettings...)...),
		Action: action,
	}
}

// serveUI serves the page until it is interrupted, and prints links to it.
func serveUI(ctx context.Context, o uiOptions) error {
	l, err := listenOnLoopback()
	if err != nil {
		return err
	}
	defer l.Close()
	o.lookForPolicy()
	used := make(chan struct{}, 1)
	options := page.Options{
		Record:    o.history(),
		OpenFile:  artifacts.New(artifacts.Options{Dir: filesDir(o.Settings)}).Open,
		Connect:   o.connect,
		Shown:     o.shown,
		Policy:    o.policyFile,
		ReadsOnly: readsOnly,
		Servers:   o.servers, Server: o.server, Sandbox: o.sandbox,
		Opened: func() {
			select {
			case used <- struct{}{}:
			default:
			}
		},
		Log: shellLogger(o.Options),
	}
	if terminal, err := console.OpenTerminal(); err == nil {
		defer terminal.Close()
		options.ShowCode = showCode(terminal)
	}
	server := page.New(l.Addr(), options)
	defer server.Close()
	fmt.Fprintf(o.Stdout(), "open in your browser, once: %s\n", server.Link())
	if note := startNote(readsOnly(), options.ShowCode != nil); note != "" {
		console.Note(o.Err, note)
	}
	go func() {
		defer contain.Recover("showing another link", nil)
		for {
			select {
			case <-ctx.Done():
				return
			case <-used:
				fmt.Fprintf(o.Stdout(), "for another browser:        %s\n", server.Link())
			}
		}
	}()
	return server.Serve(ctx, l)
}

// connect connects to the processes that may have questions, which the page answers.
func (o uiOptions) connect() ([]*inbox.Client, error) {
	all, err := openApprovals(o.Settings)
	for _, c := range all {
		c.Page = true
	}
	return all, err
}

// shown says of which runs the page shows no values. The policy is read anew for each page.
func (o uiOptions) shown() timeline.Options {
	o.lookForPolicy()
	shown := timeline.Options{ToShow: "toolcell ui --values"}
	switch {
	case readsOnly() != "":
		shown.HideAll, shown.ToShow = true, "toolcell ui in a terminal of your own"
	case !o.Values:
		shown.Hide = privateServers(o.Options)
	}
	return shown
}

// readsOnly says why the page does nothing but show, "" if it does more.
func readsOnly() string {
	below, err := inbox.BelowClient()
	switch {
	case err != nil:
		return "This page only shows, and no values: what has started it cannot be seen."
	case below:
		return "This page only shows, and no values. An MCP client that runs toolcell has started it: start one in a terminal of your own."
	}
	return ""
}

// startNote says at the terminal what the page cannot do, "" if it can do all.
func startNote(readsOnly string, canShowCode bool) string {
	switch {
	case readsOnly != "":
		return readsOnly
	case !canShowCode:
		return "toolcell ui has no terminal here to show a code on, so the page cannot approve: start it in one, or use toolcell approvals approve"
	}
	return ""
}

// showCode writes a text at the terminal that controls this process, whatever its streams are.
func showCode(terminal *os.File) func(string) error {
	return func(text string) error {
		_, err := fmt.Fprintf(terminal, "\n%s\n\n", text)
		return err
	}
}

// listenOnLoopback listens at an address that was chosen at random: a browser sends cookies to all ports
// of an address, and most of what else it may speak with is at 127.0.0.1.
func listenOnLoopback() (l net.Listener, err error) {
	for range 10 {
		address := net.IPv4(127, byte(1+rand.IntN(254)), byte(rand.IntN(256)), byte(1+rand.IntN(254)))
		if l, err = net.Listen("tcp4", net.JoinHostPort(address.String(), "0")); err == nil {
			return l, nil
		}
	}
	return nil, fmt.Errorf("listening on this host: %w", err)
}
