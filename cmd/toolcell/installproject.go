package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/bridge/project"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
)

// askForProject asks, once for all clients, whether code may read the files of the project that
// a client works in, and keeps the answer in the user's config.toml. It may not if there is no
// terminal to ask on, with --yes, or if Enter is typed. Nothing is asked if the user has said so
// before, in the file or otherwise, and for a file that others of the project use.
func askForProject(ctx context.Context, o installOptions) error {
	chosen := o.Settings.Chosen("project") || slices.ContainsFunc(o.change.Env, ofProject)
	if chosen || o.change.Project || o.change.Yes || o.change.DryRun || o.Print || o.JSON || !console.Terminal(o.In) || !console.Terminal(o.Err) {
		return nil
	}
	fmt.Fprintf(o.Err, "May code read the files of the project that a client works in? They are at %s, read-only,\nwithout %s. [y/N] ",
		project.Target, strings.Join(project.Hidden, ", "))
	answer, err := console.ReadLine(ctx, o.In)
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(o.Err)
		return context.Cause(ctx)
	case err != nil:
		return nil //nolint:nilerr // without an answer the user is asked another time
	}
	said, other := settings.ProjectOff, settings.ProjectRead
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer == "y" || answer == "yes" {
		said, other = other, said
	}
	if err := settings.SetInFile(ctx, "project", []string{said}); err != nil {
		return err
	}
	fmt.Fprintf(o.Stdout(), "saved in %s; to change it: toolcell settings set project %s\n", settings.UserFileName(), other)
	return nil
}

// ofProject reports whether a variable of --env is about the setting.
func ofProject(pair string) bool {
	name, _, _ := strings.Cut(pair, "=")
	k := settings.OfVariable(name)
	return k != nil && k.Name == "project"
}
