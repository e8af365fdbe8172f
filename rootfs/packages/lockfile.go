package packages

import (
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/internal/toml"
	"github.com/toolcell/toolcell/rootfs/rootdir"
)

// A Lock is a lock file of PEP 751: which packages, in which versions, from where.
type Lock struct {
	text     []byte
	packages []lockedPackage
}

// A lockedPackage is an entry of a lock. Other fields are not needed: a package without
// wheels is refused.
type lockedPackage struct {
	Name    string        `json:"name"`
	Version string        `json:"version"`
	Marker  string        `json:"marker"`
	Wheels  []lockedWheel `json:"wheels"`
}

type lockedWheel struct {
	Name        string `json:"name"`
	URL         string `json:"url"`
	Size        int64  `json:"size"`
	wheelHashes `json:"hashes"`

	address *url.URL // of the chosen wheel; nil if the URL cannot be parsed
}

type wheelHashes struct {
	SHA256 string `json:"sha256"`
}

// maxLock bounds a lock file, in bytes; one of 236 packages has 1.4 million.
const maxLock = 4 << 20

// Names and versions become parts of requirements and of paths.
var (
	packageName    = text.Pattern(`^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?$`)
	packageVersion = text.Pattern(`^[A-Za-z0-9][A-Za-z0-9.!+_-]{0,199}$`)
	sha256Form     = text.Pattern(`^[0-9a-f]{64}$`)
	wheelForm      = text.Pattern(`^[A-Za-z0-9][A-Za-z0-9._+!-]{0,250}\.whl$`)
)

// ParseLock reads a lock file.
func ParseLock(ctx context.Context, text []byte) (*Lock, error) {
	if len(text) > maxLock {
		return nil, fmt.Errorf("the lock has more than %d bytes", maxLock)
	}
	var file struct {
		Version  string          `json:"lock-version"`
		Packages []lockedPackage `json:"packages"`
	}
	err := toml.Unmarshal(ctx, text, &file, json.RejectUnknownMembers(false))
	if wrong, ok := errors.AsType[*toml.Error](err); ok {
		return nil, fmt.Errorf("the lock, line %d: %s", wrong.Line, wrong.Message)
	}
	if err != nil {
		return nil, fmt.Errorf("the lock: %w", err)
	}
	if !strings.HasPrefix(file.Version, "1.") {
		return nil, fmt.Errorf("the lock has lock-version %s; 1.0 is supported", rootdir.Quote(file.Version))
	}
	for _, p := range file.Packages {
		if err := p.checkForm(); err != nil {
			return nil, fmt.Errorf("the lock: %w", err)
		}
	}
	return &Lock{text, file.Packages}, nil
}

func (p lockedPackage) checkForm() error {
	switch {
	case !packageName().MatchString(p.Name):
		return fmt.Errorf("%s is not the name of a package", rootdir.Quote(p.Name))
	case len(p.Wheels) == 0:
		return fmt.Errorf("%s has no wheels of an index; nothing is built from source", p.Name)
	case !packageVersion().MatchString(p.Version):
		return fmt.Errorf("%s has no version, or one that is not understood", p.Name)
	case strings.ContainsAny(p.Marker, "\n\r#\\"):
		return fmt.Errorf("the marker of %s is not understood", p.Name)
	}
	for _, w := range p.Wheels {
		if !sha256Form().MatchString(w.SHA256) {
			return fmt.Errorf("a wheel of %s has no SHA-256", p.Name)
		}
	}
	return nil
}

// file is the name of the wheel's file.
func (w lockedWheel) file() string {
	if w.Name != "" {
		return w.Name
	}
	u, err := url.Parse(w.URL)
	if err != nil {
		return ""
	}
	return path.Base(u.Path)
}

// check checks the chosen wheels of a resolved request, and where they come from.
func (l *Lock) check(j *job) error {
	if len(l.packages) > j.MaxCount {
		return requestErrorf("the script needs %d packages with all that they need; the most is %d ([packages] maxCount)", len(l.packages), j.MaxCount)
	}
	var size int64
	for _, p := range l.packages {
		if j.Check == nil {
			return requestErrorf("nothing checks the package %q, so it is not used", p.Name)
		}
		if err := j.Check(p.Name, p.Version); err != nil {
			return &RequestError{Err: err}
		}
		w := p.Wheels[0]
		if !wheelForm().MatchString(w.file()) {
			return fmt.Errorf("%s is not the name of a wheel", rootdir.Quote(w.file()))
		}
		if err := j.from.Check(w.address); err != nil {
			return fmt.Errorf("the wheel %s: %w", w.file(), err)
		}
		size += max(w.Size, 0)
	}
	if size > j.MaxBytes {
		return requestErrorf("the packages have %s; the most is %s ([packages] maxBytes)", sizeText(size), sizeText(j.MaxBytes))
	}
	return nil
}

// sizeText formats a size.
func sizeText(n int64) string {
	if n < 10e6 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%d MB", n/1e6)
}

// normalizedName returns a package's name in its normalized form (PEP 503).
func normalizedName(s string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(s), func(c rune) bool { return c == '-' || c == '_' || c == '.' }), "-")
}

// sameName reports whether two names mean the same package.
func sameName(a, b string) bool { return normalizedName(a) == normalizedName(b) }

// Packages returns the packages of a lock in its order, each with the wheel that Python's tools
// would install.
func (l *Lock) Packages() (all []Package) {
	for _, p := range l.packages {
		all = append(all, Package{p.Name, p.Version, p.best().SHA256})
	}
	return all
}

// constraints returns requirements that only the packages of a lock meet.
func (l *Lock) constraints() (lines []string) {
	for _, p := range l.packages {
		line := p.Name + "==" + p.Version
		if p.Marker != "" {
			line += " ; " + p.Marker
		}
		lines = append(lines, line)
	}
	return lines
}

// contains checks that all packages of another lock are in this one, with their hashes.
func (l *Lock) contains(other *Lock) error {
	for _, p := range other.packages {
		found := slices.ContainsFunc(l.packages, func(q lockedPackage) bool {
			return sameName(p.Name, q.Name) && p.Version == q.Version && slices.ContainsFunc(q.Wheels, func(w lockedWheel) bool {
				return w.SHA256 == p.Wheels[0].SHA256
			})
		})
		if !found {
			return requestErrorf("%w %s %s with the wheel that this image needs", ErrNotLocked, p.Name, p.Version)
		}
	}
	return nil
}
