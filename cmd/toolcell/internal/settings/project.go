package settings

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/bridge/project"
)

// Values of the setting --project.
const (
	ProjectOff  = "off"
	ProjectRead = "read"
)

// readProject reads whether code can read the client's folder.
func (s *Settings) readProject(value string) error {
	word := strings.ToLower(value)
	switch {
	case word == ProjectOff, word == ProjectRead:
		s.Project = word
	case slices.Contains([]string{"true", "1", "yes", "on"}, word): // true is the flag without a value
		s.Project = ProjectRead
	case slices.Contains([]string{"false", "0", "no"}, word):
		s.Project = ProjectOff
	default:
		return fmt.Errorf("%q is neither %s nor %s; code cannot write to the folder", value, ProjectRead, ProjectOff)
	}
	return nil
}

// CheckProject refuses a folder that code must not see as the client's. Code may read a policy
// that is in there, and cannot change it.
func (s Settings) CheckProject(dir string) error {
	why := whyClosed(dir, s.ownFolders())
	for _, m := range s.Mounts {
		if why == "" && m.Writable && m.Source != dir && within(dir, m.Source) {
			why = "it is inside " + m.Source + ", which code may write to"
		}
	}
	if why == "" {
		return nil
	}
	return fmt.Errorf("the project's folder %q is not shown at %s: %s; start the client in the folder of a project, or name another with --mounts (TOOLCELL_MOUNTS)",
		dir, project.Target, why)
}
