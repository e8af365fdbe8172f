package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
)

// trustSettings are those of commands about what servers may do.
var trustSettings = append(slices.Clone(discoverySettings), "policy")

// discoverySettings are the settings of commands that only look for servers.
var discoverySettings = []string{"state-dir", "servers-config", "log-level", "allow-self-server"}

func serversTrustCommand(s *console.Streams) *cli.Command {
	return command("trust", "let a project's config file start its servers, or a server have what the policy gives it", "FILE|NAME…", trustSettings,
		action(s, func(ctx context.Context, o Options) error { return eachTrusted(ctx, o, trustServer, trustFile) }))
}

func serversUntrustCommand(s *console.Streams) *cli.Command {
	return command("untrust", "stop trusting a project's config file, or a server", "FILE|NAME…", trustSettings,
		action(s, func(ctx context.Context, o Options) error { return eachTrusted(ctx, o, untrustServer, untrustFile) }))
}

// A trustRow is a row of servers trust and servers untrust. Of a server, File is the one that has its
// entry, "" if none has.
type trustRow struct {
	File    string `json:"file"`
	Trusted bool   `json:"trusted"`
	Changed bool   `json:"changed"` // by this command
	*serverRights
}

// eachTrusted does something for every server and every file that the command line names.
func eachTrusted(ctx context.Context, o Options, server func(t *trusting, name string) (*trustRow, string, error), projectFile func(f *discovered, file string) (*trustRow, string, error)) error {
	found, err := discoverForShell(o, shellLogger(o))
	if err != nil {
		return err
	}
	t := newTrusting(o, found)
	return eachArgument(ctx, o, func(arg string) (*trustRow, string, error) {
		if t.isServer(arg) {
			return server(t, arg)
		}
		file, err := filepath.Abs(arg)
		if err != nil {
			return nil, "", err
		}
		if dir, err := filepath.EvalSymlinks(filepath.Dir(file)); err == nil {
			file = filepath.Join(dir, filepath.Base(file))
		}
		return projectFile(found, file)
	})
}

func trustFile(f *discovered, file string) (*trustRow, string, error) {
	if _, err := os.Stat(file); err != nil {
		return nil, "", fmt.Errorf("trusting %s: %w", file, errors.Unwrap(err)) // without the path again
	}
	options := f.options
	options.Dir = clientconfig.ProjectOf(file)
	if options.Dir == "" {
		return nil, "", fmt.Errorf("trusting %s: it is no config file of a project; the file must be in its place, such as .mcp.json or .cursor/mcp.json in the project's directory", file)
	}
	config := clientconfig.Discover(options)
	for _, p := range config.Projects {
		if p.Path != file {
			continue
		}
		if err := f.trust.Set(file, p.Sum, true); err != nil {
			return nil, "", fmt.Errorf("trusting %s: %w", file, err)
		}
		var lines strings.Builder
		fmt.Fprintf(&lines, "trusted as it is now: %s\n", file)
		showStarts(&lines, p)
		return &trustRow{File: file, Trusted: true, Changed: true}, lines.String(), nil
	}
	for _, p := range config.Problems {
		if p.Source == file && !p.Skipped {
			return nil, "", fmt.Errorf("trusting %s: %s", file, p.Reason)
		}
	}
	return &trustRow{File: file, Trusted: true}, "nothing to do: " + file + " is trusted already, or starts nothing that needs it\n", nil
}

func untrustFile(f *discovered, file string) (*trustRow, string, error) {
	was, err := f.trust.Forget(file)
	if err != nil {
		return nil, "", fmt.Errorf("taking trust from %s: %w", file, err)
	}
	if !was {
		return &trustRow{File: file}, "nothing to do: " + file + " was not trusted\n", nil
	}
	return &trustRow{File: file, Changed: true}, "no longer trusted: " + file + "\n", nil
}
