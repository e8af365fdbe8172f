package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/runcell/runcell/bridge"
	"github.com/runcell/runcell/oci"
	"github.com/urfave/cli/v2"
)

func doctorCommand(s *streams) *cli.Command {
	return &cli.Command{
		Name:         "doctor",
		Usage:        "check whether this host can run sandboxes, and say what cures it if not",
		Flags:        append([]cli.Flag{jsonFlag()}, settingFlags()...),
		OnUsageError: usageError,
		Action:       func(c *cli.Context) error { return doctor(c, s) },
	}
}

func doctor(c *cli.Context, s *streams) (err error) {
	settings, err := readSettings(c)
	if err != nil {
		return err
	}
	// The host is what is examined, so no registry is asked.
	settings.Image, settings.ImageNamed = "host", true
	settings.LogLevel = max(settings.LogLevel, slog.LevelWarn)
	p, err := open(settings, newLogger(settings, s.err))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	checks := p.runtime.Examine(settings.Limits)
	checks = append(checks, trial(c.Context, p.bridge))
	if c.Bool("json") {
		err = printJSON(s.out, checks)
	} else {
		printChecks(s.out, checks)
	}
	for _, check := range checks {
		if err == nil && check.Status == oci.CheckFatal {
			err = &exitError{code: exitHost}
		}
	}
	return err
}

// trial does the real thing: Python in a sandbox, on the host's own /usr.
func trial(ctx context.Context, b *bridge.Server) oci.Check {
	c := oci.Check{Code: "RC-SANDBOX", Status: oci.CheckOK}
	start := time.Now()
	r := b.Run(ctx, bridge.Request{Code: "import sys; print(sys.version.split()[0])", Timeout: 30 * time.Second})
	if r.IsError() {
		return oci.Check{Code: c.Code, Status: oci.CheckFatal, Text: "a sandbox did not run: " + r.Error, Cure: r.Hint}
	}
	c.Text = fmt.Sprintf("Python %s of this host ran in a sandbox, in %d ms", strings.Join(r.Stdout, " "), time.Since(start).Milliseconds())
	return c
}

func printChecks(w io.Writer, checks []oci.Check) {
	for _, c := range checks {
		fmt.Fprintf(w, "%-9s %-12s %s\n", c.Status, c.Code, c.Text)
		if c.Cure != "" {
			fmt.Fprintf(w, "%22s cure: %s\n", "", strings.ReplaceAll(c.Cure, "\n", "\n"+strings.Repeat(" ", 29)))
		}
	}
}
