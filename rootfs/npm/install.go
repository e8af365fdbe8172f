package npm

import (
	_ "embed"
	"slices"
)

//go:embed runscripts.js
var runScript string

// RunScripts returns the command that copies a layer, which a sandbox has at a path, to HOME/node_modules
// there, and runs its install scripts on the copy. It ends with 0 if all of them have, but for those of
// packages that others do without: HOME then has nothing else, and other users can read it. What it
// writes to standard error says why one has not.
//
// The scripts are code of the packages: they may do in that sandbox whatever it allows.
func (t Tool) RunScripts(l *Layer, at string) []string {
	args := []string{t.Node, "-e", runScript, "--", t.CLI, at}
	for _, name := range l.Scripts {
		if !slices.Contains(l.Needed, name) {
			name = "optional:" + name // which no name is
		}
		args = append(args, name)
	}
	return args
}
