package packages

import (
	"context"
	_ "embed"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/toolcell/toolcell/internal/text"
)

// Packages of the image remain importable after those of a set, but some would break: a
// module compiled for another NumPy crashes or fails with the set's, and packages that
// could do without it still import it. So runs with the set do not find such modules.

//go:embed imageconflicts.py
var conflictsScript string

// HiddenName is the file at the top of a set that lists the modules of the image to hide,
// one a line.
const HiddenName = ".toolcell-hidden"

// maxHidden bounds the modules that an image hides.
const maxHidden = 5000

var moduleName = text.Pattern(`^[A-Za-z_]\w{0,100}$`)

// conflicts asks the image which of its modules conflict with the packages of a lock. If
// it does not answer, none does.
func (j *job) conflicts(ctx context.Context, lock *Lock) (hidden []string, err error) {
	// With the packages of the image, and not with the user's.
	args := []string{j.Image.Python, "-I", "-B", "-c", conflictsScript}
	for _, p := range lock.packages {
		args = append(args, normalizedName(p.Name)+"=="+p.Version)
	}
	out, err := j.Run(ctx, Command{Args: args})
	if err != nil {
		return nil, err
	}
	for name := range strings.FieldsSeq(string(out.Stdout)) {
		if len(hidden) == maxHidden {
			break
		}
		if moduleName().MatchString(name) {
			hidden = append(hidden, name)
		}
	}
	return hidden, nil
}

// writeHidden writes the file of a set.
func writeHidden(packages string, hidden []string) error {
	if hidden == nil {
		return nil
	}
	file := filepath.Join(packages, HiddenName)
	return errors.Join(os.WriteFile(file, []byte(strings.Join(hidden, "\n")+"\n"), 0o644), os.Chmod(file, 0o644))
}
