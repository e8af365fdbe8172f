package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/urfave/cli/v2"
)

// loginWithin is how long the user may take in the browser.
const loginWithin = 10 * time.Minute

// loginSettings are those that servers are found and reached by.
var loginSettings = append(slices.Clone(discoverySettings), "policy")

func serversLoginCommand(s *console.Streams) *cli.Command {
	flags := []cli.Flag{jsonFlag(), &cli.BoolFlag{Name: "no-browser", Usage: "only print the address, open no browser"}}
	return &cli.Command{
		Name: "login", Usage: "log in to a remote server with OAuth, in a browser", ArgsUsage: "NAME",
		Description: "A page of the service opens in your browser; when you have agreed there, the tokens are kept in the\n" +
			"state folder, in a file that only you can read, and all toolcell processes use and renew them. If a\n" +
			"server has refused a request for lack of scopes, logging in again asks for them.",
		Flags: append(flags, settings.Flags(loginSettings...)...), OnUsageError: usageError,
		Action: func(c *cli.Context) error {
			return withProxy(c, s, func(c *cli.Context, p *mcpproxy.Proxy) error { return serversLogin(c, s, p) })
		},
	}
}

func serversLogoutCommand(s *console.Streams) *cli.Command {
	return &cli.Command{
		Name: "logout", Usage: "forget the login to a remote server", ArgsUsage: "NAME",
		Description: "The tokens on this machine are deleted. The service may know them until they end: to withdraw them at\n" +
			"once, use its own page of connected applications.",
		Flags: append([]cli.Flag{jsonFlag()}, settings.Flags(loginSettings...)...), OnUsageError: usageError,
		Action: func(c *cli.Context) error {
			return withProxy(c, s, func(c *cli.Context, p *mcpproxy.Proxy) error { return serversLogout(c, s, p) })
		},
	}
}

func serversLogin(c *cli.Context, s *console.Streams, p *mcpproxy.Proxy) error {
	if c.NArg() != 1 {
		return console.Usagef("servers login takes the name of one server")
	}
	name := c.Args().First()
	ctx, cancel := context.WithTimeoutCause(c.Context, loginWithin, fmt.Errorf("it was not done within %v", loginWithin))
	defer cancel()
	if err := logIn(ctx, c, s, p); err != nil {
		return err
	}
	tools, err := p.Tools(ctx, name)
	if err != nil {
		return fmt.Errorf("logged in to %q, but it cannot be used: %w", name, err)
	}
	if c.Bool("json") {
		return console.PrintJSON(s, []map[string]any{{"name": name, "loggedIn": true, "tools": len(tools)}})
	}
	_, err = fmt.Fprintf(s.Out, "logged in to %q, which has %d tools\n", name, len(tools))
	return err
}

// logIn shows the address to log in at, and waits for the browser. The browser of
// another machine cannot come back to this one: then the user brings the address that
// it ended at.
func logIn(ctx context.Context, c *cli.Context, s *console.Streams, p *mcpproxy.Proxy) error {
	ctx, cancel := context.WithCancel(ctx)
	var pasting sync.WaitGroup
	defer pasting.Wait()
	defer cancel()
	return p.Login(ctx, c.Args().First(), func(address string) {
		fmt.Fprintf(s.Err, "Log in at this address:\n\n    %s\n\n%s", address, askedFor(address))
		if !c.Bool("no-browser") && openBrowser(address) {
			fmt.Fprintln(s.Err, "A browser should have opened. Waiting for it to come back …")
		} else {
			fmt.Fprintln(s.Err, "Open it in a browser. If that is one of another machine, it ends on a page that it cannot open:\n"+
				"paste the address of that page here. Waiting …")
		}
		pasting.Go(func() {
			defer contain.Recover("reading a pasted address", nil)
			if err := bringBack(ctx, s, address); err != nil && ctx.Err() == nil {
				fmt.Fprintf(s.Err, "That does not help: %v\n", err)
			}
		})
	})
}

// askedFor says which scopes a login asks for.
func askedFor(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Query().Get("scope") == "" {
		return ""
	}
	return "It asks for the scopes " + text.QuoteList(strings.Fields(u.Query().Get("scope")), 20) + ".\n"
}

// bringBack takes the address that a browser of another machine ended at to the port
// that waits for it.
func bringBack(ctx context.Context, s *console.Streams, address string) error {
	for {
		line, err := console.ReadLine(ctx, s.In)
		if err != nil {
			return nil //nolint:nilerr // there is no more to read
		}
		if strings.TrimSpace(line) == "" {
			continue
		}
		came, err := pastedAddress(line, address)
		if err != nil {
			fmt.Fprintf(s.Err, "%v\n", err)
			continue
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, came, nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			return err
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return nil
		}
		fmt.Fprintln(s.Err, "That is the address of another login.")
	}
}

// pastedAddress checks that a line is where the login at address would come back to.
func pastedAddress(line, address string) (string, error) {
	login, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	back, err := url.Parse(login.Query().Get("redirect_uri"))
	if err != nil {
		return "", err
	}
	came, err := url.Parse(strings.TrimSpace(line))
	if err != nil || came.Scheme != back.Scheme || came.Host != back.Host || came.Path != back.Path {
		return "", fmt.Errorf("that is not the address that the browser ended at, which begins with %s", back)
	}
	came.Host = net.JoinHostPort("127.0.0.1", back.Port()) // where it waits, also if it is called localhost
	return came.String(), nil
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
		return console.PrintJSON(s, []map[string]any{{"name": c.Args().First(), "loggedIn": false, "changed": was}})
	}
	if !was {
		fmt.Fprintf(s.Stdout(), "there was no login to %q\n", c.Args().First())
		return nil
	}
	fmt.Fprintf(s.Stdout(), "forgot the login to %q\n", c.Args().First())
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
	go func() {
		var err error
		defer func() { ended <- err }()
		defer contain.Error("waiting for the browser", &err)
		err = cmd.Wait()
	}()
	select {
	case err := <-ended:
		return err == nil
	case <-time.After(2 * time.Second):
		return true
	}
}
