package sandboxes

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/toolcell/toolcell/bridge"
)

// standInWhy begins the note about the host's own Python where that stands in.
const standInWhy = "this ran on the host's own Python, since "

// Greeting says which Python code will run on, and why it is not the default image's.
// It pulls the image if need be.
func (s *Images) Greeting(ctx context.Context, progress func(done, total int64, text string)) string {
	image, err := s.Get(ctx, progress)
	if err != nil {
		return "Python in a sandbox of " + s.Ref // the first run reports why not
	}
	python := "Python"
	if v := version(image); v != "" {
		python += " " + v
	}
	for _, note := range image.Notes {
		if why, ok := strings.CutPrefix(note, standInWhy); ok {
			return python + " of this host, in a sandbox, since " + why
		}
	}
	if image.Name == "host" {
		return python + " of this host, in a sandbox"
	}
	return python + " in a sandbox of " + image.Name
}

var versioned = regexp.MustCompile(`^python(\d+\.\d+)t?$`)

// version returns the version of an image's Python as the name of its program has it,
// "" if it has none: python3 is a link to python3.14.
func version(image bridge.Image) string {
	at := image.Root.Dir + image.Python
	for _, b := range image.Root.Binds {
		if rest, below := strings.CutPrefix(image.Python, b.Target+"/"); below {
			at = filepath.Join(b.Source, rest)
		}
	}
	name := filepath.Base(at)
	if to, err := os.Readlink(at); err == nil {
		name = filepath.Base(to)
	}
	if m := versioned.FindStringSubmatch(name); m != nil {
		return m[1]
	}
	return ""
}
