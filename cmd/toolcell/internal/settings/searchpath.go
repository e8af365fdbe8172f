package settings

import (
	"os"
	"slices"
	"strings"
)

// standardPath are the folders in which Linux distributions install programs.
var standardPath = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// CompletePath appends to PATH the standard folders that are not in it. MCP clients
// may start toolcell with a short PATH or none. libcontainer looks for newuidmap in
// PATH, and without it all sandboxes would have the user's own ID. What PATH has
// already comes first, and servers inherit the result.
func CompletePath() {
	_ = os.Setenv("PATH", completePath(os.Getenv("PATH"))) // the error is that of a name or value that is not legal
}

func completePath(path string) string {
	var dirs []string
	if path != "" { // an empty element would be the current folder
		dirs = strings.Split(path, ":")
	}
	for _, dir := range standardPath {
		if !slices.Contains(dirs, dir) && !slices.Contains(dirs, dir+"/") {
			dirs = append(dirs, dir)
		}
	}
	return strings.Join(dirs, ":")
}
