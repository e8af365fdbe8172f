package main

import (
	"os/user"
	"path/filepath"

	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/mcpproxy"
)

// recordDir is the folder of the record of runs.
func recordDir(s settings.Settings) string { return filepath.Join(s.Dirs.State, "records") }

// filesDir is the folder of the files that runs have left.
func filesDir(s settings.Settings) string { return filepath.Join(s.Dirs.State, "runs") }

// openRecord returns the record for the runs of a command, nil if they are not recorded. The secrets
// of the user's servers are kept out of it.
func openRecord(s settings.Settings, o appOptions, servers *mcpproxy.Proxy) *record.Journal {
	if o.command == "" {
		return nil
	}
	options := s.Record
	options.Dir, options.Shared = recordDir(s), o.live == nil
	options.Command, options.Version, options.Log = o.command, version, o.log
	options.Secrets = servers.WithoutSecrets
	if u, err := user.Current(); err == nil {
		options.User = u.Username
	}
	return record.Open(options)
}
