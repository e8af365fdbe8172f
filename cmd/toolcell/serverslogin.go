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

	"github.com/urfave/cli/v2"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy"
)

// loginWithin bounds the user's time in the browser.
const loginWithin = 10 * time.Minute

// loginSettings are those that servers are found and reached by.
var loginSettings = append(slices.Clone(discoverySettings), "policy")

type serversLoginOptions struct {
	Options
	NoBrowser bool
}

func serversLoginCommand(s *console.Streams) *cli.Command {
	return &cli.Command{
		Name: "login", Usage: "log in to a remote server with OAuth, in a browser", ArgsUsage: "NAME",
		Description: "A page of the service opens in your browser. When you have agreed there, the tokens are kept in the\n" +
			"state folder, in a file that only you can read, and all toolcell processes use and renew them. If a\n" +
			"server has refused a request for lack of scopes, logging in again asks for these scopes.",
		Flags: flags(loginSettings, jsonFlag(), &cli.BoolFlag{Name: "no-browser", Usage: "only print the address, open no browser"}),
		Action: actionWith(s, func(c *cli.Context, o Options) error {
			login := serversLoginOptions{o, c.Bool("no-browser")}
			return serversFunc(login.run).run(c.Context, o)
		}),
	}
}

func serversLogoutCommand(s *console.Streams) *cli.Command {
	return &cli.Command{
		Name: "logout", Usage: "forget the login to a remote server", ArgsUsage: "NAME",
		Description: "The tokens on this machine are deleted. The service may accept them until they expire: to revoke them\n" +
			"at once, use its page of connected applications.",
		Flags: flags(loginSettings), Action: action(s, serversFunc(serversLogout).run),
	}
}

func (o serversLoginOptions) run(ctx context.Context, _ Options, p *mcpproxy.Proxy) error {
	name := o.Args[0]
	ctx, cancel := context.WithTimeoutCause(ctx, loginWithin, fmt.Errorf("it was not done within %v", loginWithin))
	defer cancel()
	if err := o.logIn(ctx, p); err != nil {
		return err
	}
	tools, err := p.Tools(ctx, name)
	if err != nil {
		return fmt.Errorf("logged in to %q, but it cannot be used: %w", name, err)
	}
	row := map[string]any{"name": name, "loggedIn": true, "tools": len(tools)}
	return printRow(o.Options, row, "logged in to %q, which has %d tools\n", name, len(tools))
}

// logIn shows the address to log in at, and waits for the browser. The browser of
// another machine cannot come back to this one: then the user brings the address that
// it ended at.
func (o serversLoginOptions) logIn(ctx context.Context, p *mcpproxy.Proxy) error {
	ctx, cancel := context.WithCancel(ctx)
	var pasting sync.WaitGroup
	defer pasting.Wait()
	defer cancel()
	return p.Login(ctx, o.Args[0], func(address string) {
		fmt.Fprintf(o.Err, "Log in at this address:\n\n    %s\n\n%s", address, askedFor(address))
		if !o.NoBrowser && openBrowser(address) {
			fmt.Fprintln(o.Err, "A browser should have opened. Waiting for it to come back …")
		} else {
			fmt.Fprintln(o.Err, "Open it in a browser. If that is one of another machine, it ends on a page that it cannot open:\n"+
				"paste the address of that page here. Waiting …")
		}
		pasting.Go(func() {
			defer contain.Recover("reading a pasted address", nil)
			if err := bringBack(ctx, o.Streams, address); err != nil && ctx.Err() == nil {
				fmt.Fprintf(o.Err, "That does not help: %v\n", err)
			}
		})
	})
}

// askedFor lists the scopes that a login asks for.
func askedFor(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Query().Get("scope") == "" {
		return ""
	}
	return "It asks for the scopes " + text.QuoteList(strings.Fields(u.Query().Get("scope")), 20) + ".\n"
}

// bringBack reads the address at which a browser on another machine ended, and requests it
// from the port that waits for the login.
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

func serversLogout(_ context.Context, o Options, p *mcpproxy.Proxy) error {
	was, err := p.Logout(o.Args[0])
	if err != nil {
		return err
	}
	said := "there was no login to %q\n"
	if was {
		said = "forgot the login to %q\n"
	}
	return printRow(o, map[string]any{"name": o.Args[0], "loggedIn": false, "changed": was}, said, o.Args[0])
}

// openBrowser starts the desktop's program for addresses. It does not wait for its end, since
// some browsers run in it.
func openBrowser(address string) bool {
	path, err := exec.LookPath("xdg-open")
	if err != nil {
		return false
	}
	cmd := exec.Command(path, address)
	if err := cmd.Start(); err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_, err = contain.Await(ctx, "waiting for the browser", func() (any, error) { return nil, cmd.Wait() })
	return err == nil || ctx.Err() != nil
}
