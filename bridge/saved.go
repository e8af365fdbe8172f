package bridge

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Bounds on saved tools.
const (
	maxSavedTools  = 200
	maxSavedSource = 64 << 10 // bytes of one
)

var toolName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

// savedTools keeps functions that code asked to be kept, as source, one file
// each. They are only ever run in a sandbox.
type savedTools struct {
	dir string
}

// save keeps a function's source under its name; one of that name is replaced.
func (s savedTools) save(name, source string) error {
	switch {
	case s.dir == "":
		return fmt.Errorf("saving tool %q: there is no folder for saved tools", name)
	case !toolName.MatchString(name):
		return fmt.Errorf("saving a tool: %q is not a name for one (letters, digits and _, at most 64)", boundText(name, 80))
	case len(source) > maxSavedSource:
		return fmt.Errorf("saving tool %q: its source has %d bytes, the most is %d", name, len(source), maxSavedSource)
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("saving tool %q: %w", name, err)
	}
	path := filepath.Join(s.dir, name+".py")
	if _, err := os.Stat(path); err != nil {
		if all, _ := filepath.Glob(filepath.Join(s.dir, "*.py")); len(all) >= maxSavedTools {
			return fmt.Errorf("saving tool %q: there are %d saved tools already, which is the most", name, len(all))
		}
	}
	tmp, err := os.CreateTemp(s.dir, ".new-*")
	if err != nil {
		return fmt.Errorf("saving tool %q: %w", name, err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.WriteString(source)
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("saving tool %q: %w", name, err)
	}
	return nil
}

// load gives the source of every saved tool by name. One that cannot be read
// is passed over.
func (s savedTools) load(log *slog.Logger) map[string]string {
	if s.dir == "" {
		return nil
	}
	files, _ := filepath.Glob(filepath.Join(s.dir, "*.py"))
	out := map[string]string{}
	for _, path := range files {
		name := strings.TrimSuffix(filepath.Base(path), ".py")
		body, err := os.ReadFile(path)
		if err != nil || !toolName.MatchString(name) || len(body) > maxSavedSource || len(out) >= maxSavedTools {
			log.Warn("passing over a saved tool", "file", path, "err", err)
			continue
		}
		out[name] = string(body)
	}
	return out
}
