package packages

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

const lockedSix = `lock-version = "1.0"
[[packages]]
name = "six"
version = "1.17.0"
wheels = [{ url = "https://x/six-1.17.0-py2.py3-none-any.whl", size = 7, hashes = { sha256 = "4721f391ed90541fddacab5acf947aa0d3dc7d27b2e1e8eda2be8970586c3274" } }]
`

func TestParseLockReadsEveryWayToWriteAWheel(t *testing.T) {
	const headers = "lock-version = '1.0'\n[[packages]]\nname = 'six'\nversion = '1.17.0'\n[[packages.wheels]]\nurl = 'https://x/six-1.17.0-py2.py3-none-any.whl'\nsize = 7\nhashes.sha256 = '4721f391ed90541fddacab5acf947aa0d3dc7d27b2e1e8eda2be8970586c3274'\n[packages.tool.x]\nName = 1\n"
	for _, text := range []string{lockedSix, headers} {
		l, err := ParseLock(t.Context(), []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if p := l.packages[0]; p.Name != "six" || p.Version != "1.17.0" || p.Wheels[0].file() != "six-1.17.0-py2.py3-none-any.whl" || p.Wheels[0].Size != 7 || p.Wheels[0].SHA256[:4] != "4721" {
			t.Errorf("%+v", p)
		}
	}
}

func TestParseLockRefuses(t *testing.T) {
	for name, tt := range map[string]struct{ from, to, want string }{
		"other syntax":           {"[[packages]]", "[[packages", "the lock, line 2: "},
		"another version":        {`"1.0"`, `"2.0"`, "lock-version"},
		"a version of a number":  {`"1.0"`, "1.0", "the lock, line 1: lock-version: it must be a string, not a number"},
		"a name in another case": {"name =", "Name =", `"" is not the name of a package`},
		"twins":                  {"name =", "name = \"seven\"\nname =", "line 4: key name is already defined"},
		"twins in another case":  {"name =", "NAME = \"seven\"\nname =", ""},
		"a name of a number":     {`"six"`, "6", "the lock, line 3: [packages] name: it must be a string, not a number"},
		"wheels of a string":     {"wheels = [", "wheels = ['x', ", "the lock, line 5: [packages] wheels: it must be a table, not a string"},
		"a hash of a number":     {`sha256 = "`, `sha256 = 1, x = "`, "the lock, line 5: [packages.wheels.hashes] sha256: it must be a string, not a number"},
		"a path as a version":    {`"1.17.0"`, `"../1"`, "six has no version, or one that is not understood"},
		"nested tables":          {`"1.0"`, `"1.0"` + "\nx = " + strings.Repeat("{a=", 5000) + "1" + strings.Repeat("}", 5000), "line 2: nested more than 100 deep"},
		"a dotted key":           {`"1.0"`, `"1.0"` + "\na" + strings.Repeat(".a", 100_000) + " = 1", "line 2: nested more than 100 deep"},
		"a list of tables":       {`"1.0"`, `"1.0"` + "\na = [" + strings.Repeat("{},", 1_000_000) + "]", "line 2: it has too many keys and values"},
	} {
		l, err := ParseLock(t.Context(), []byte(strings.Replace(lockedSix, tt.from, tt.to, 1)))
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, %.200v; want %q", name, l, err, tt.want)
		}
	}
}

func TestLocksAreBounded(t *testing.T) {
	text := []byte(lockedSix + "#" + strings.Repeat("x", maxLock-len(lockedSix)))
	if l, err := ParseLock(t.Context(), text[:maxLock]); err != nil || len(l.packages) != 1 {
		t.Errorf("the longest: %v", err)
	}
	want := fmt.Sprintf("the lock has more than %d bytes", maxLock)
	if _, err := ParseLock(t.Context(), text); err == nil || err.Error() != want {
		t.Errorf("one more: got %v, want %s", err, want)
	}
}

func TestReadingALockEndsWithItsContext(t *testing.T) {
	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stopped)
	if _, err := ParseLock(ctx, []byte(lockedSix+"x = ["+strings.Repeat("1,", 10_000)+"]")); !errors.Is(err, stopped) {
		t.Errorf("got %v", err)
	}
}

// TestLocksKeepTheirMarkers: without it, uv would require a package of another system here.
func TestLocksKeepTheirMarkers(t *testing.T) {
	l, err := ParseLock(t.Context(), []byte(lockedSix+"marker = \"sys_platform == 'win32'\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(l.constraints(), "\n"); got != "six==1.17.0 ; sys_platform == 'win32'" {
		t.Errorf("got %q", got)
	}
}
