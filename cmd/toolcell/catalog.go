package main

import "path/filepath"

// catalogDir is where the tools of the user's servers are kept from process
// to process. Without a home for it nothing is kept, which costs time alone.
func catalogDir(s Settings) string {
	d, err := findDirs(s.StateDir)
	if err != nil {
		return ""
	}
	return filepath.Join(d.cache, "servers")
}
