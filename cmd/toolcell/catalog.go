package main

import (
	"path/filepath"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
)

// catalogDir is where the tools of the user's servers are kept from process
// to process. Without a home for it nothing is kept, which costs time alone.
func catalogDir(s settings.Settings) string {
	d, err := settings.FindDirs(s.StateDir)
	if err != nil {
		return ""
	}
	return filepath.Join(d.Cache, "servers")
}
