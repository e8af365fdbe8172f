package savedtools

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"

	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/internal/text"
)

// Saved tools are kept by project:
//
//	DIR/global/NAME.py            saved outside of any project
//	DIR/shop-1f3a…/NAME.py        saved in a project
//	DIR/shop-1f3a…/.project       the project's directory, for people who look there
const (
	globalFolder = "global"
	projectFile  = ".project"
)

// ProjectOf finds the project that a directory belongs to: the nearest one at
// or above it that is under version control, or else the directory itself. The
// root, the home directory and its parents are not projects: for them it
// returns "".
func ProjectOf(dir, home string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	if real, err := filepath.EvalSymlinks(home); err == nil && home != "" {
		home = real
	}
	if !filepath.IsAbs(dir) || isNoProject(dir, home) {
		return ""
	}
	for at := dir; !isNoProject(at, home); at = filepath.Dir(at) {
		for _, mark := range []string{".git", ".hg", ".jj"} {
			if _, err := os.Lstat(filepath.Join(at, mark)); err == nil {
				return at
			}
		}
	}
	return dir
}

func isNoProject(dir, home string) bool {
	return dir == "/" || home != "" && (dir == home || strings.HasPrefix(home, dir+"/"))
}

var notInFolderNames = text.Pattern(`[^A-Za-z0-9._-]+`)

// folder is where the tools of the project are. Its name says which project it
// is to a reader, and holds the digest of the whole path.
func (s Store) folder() string {
	if s.project == "" {
		return filepath.Join(s.dir, globalFolder)
	}
	sum := sha256.Sum256([]byte(s.project))
	name := strings.Trim(notInFolderNames().ReplaceAllString(filepath.Base(s.project), "_"), ".")
	return filepath.Join(s.dir, name[:min(len(name), 40)]+"-"+hex.EncodeToString(sum[:8]))
}

func (s Store) makeFolder() error {
	if err := os.MkdirAll(s.folder(), 0o700); err != nil || s.project == "" {
		return err
	}
	path := filepath.Join(s.folder(), projectFile)
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	return state.Replace(path, []byte(s.project+"\n"), state.Options{Unsynced: true})
}
