package main

import (
	"context"
	"fmt"
	"os/exec"
	"time"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/urfave/cli/v2"
)

// loginWithin is how long the user may take in the browser.
const loginWithin = 10 * time.Minute

// loginFlags adds the flag of `servers login` to it.
func loginFlags(login *cli.Command) *cli.Command {
	login.Flags = append(login.Flags, &cli.BoolFlag{Name: "no-browser", Usage: "only print the address, open no browser"})
	return login
}

func serversLogin(c *cli.Context, s *console.Streams, p *mcpproxy.Proxy) error {
	if c.NArg() != 1 {
		return console.Usagef("servers login takes the name of one server")
	}
	name := c.Args().First()
	ctx, cancel := context.WithTimeoutCause(c.Context, loginWithin, fmt.Errorf("it was not done within %v", loginWithin))
	defer cancel()
	err := p.Login(ctx, name, func(address string) {
		fmt.Fprintf(s.Err, "Log in at this address:\n\n    %s\n\n", address)
		if !c.Bool("no-browser") && openBrowser(address) {
			fmt.Fprintln(s.Err, "A browser should have opened. Waiting for it to come back …")
			return
		}
		fmt.Fprintln(s.Err, "Open it in a browser of this host. Waiting for it to come back …")
	})
	if err != nil {
		return err
	}
	tools, err := p.Tools(ctx, name)
	if err != nil {
		return fmt.Errorf("logged in to %q, but it cannot be used: %w", name, err)
	}
	if c.Bool("json") {
		return console.PrintJSON(s.Out, []map[string]any{{"name": name, "loggedIn": true, "tools": len(tools)}})
	}
	_, err = fmt.Fprintf(s.Out, "logged in to %q, which has %d tools\n", name, len(tools))
	return err
}

func serversLogout(c *cli.Context, s *console.Streams, p *mcpproxy.Proxy) error {
	if c.NArg() != 1 {
		return console.Usagef("servers logout takes the name of one server")
	}
	was, err := p.Logout(c.Args().First())
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return console.PrintJSON(s.Out, []map[string]any{{"name": c.Args().First(), "loggedIn": false, "changed": was}})
	}
	if !was {
		fmt.Fprintf(s.Out, "there was no login to %q\n", c.Args().First())
		return nil
	}
	fmt.Fprintf(s.Out, "forgot the login to %q\n", c.Args().First())
	return nil
}

// openBrowser starts what the desktop opens addresses with, and does not wait
// for it: some browsers run on in it.
func openBrowser(address string) bool {
	path, err := exec.LookPath("xdg-open")
	if err != nil {
		return false
	}
	cmd := exec.Command(path, address)
	if err := cmd.Start(); err != nil {
		return false
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		return err == nil
	case <-time.After(2 * time.Second):
		return true
	}
}
