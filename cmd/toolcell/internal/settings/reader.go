package settings

import (
	"fmt"
	"log/slog"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/toolcell/toolcell/bridge"
	"github.com/toolcell/toolcell/bridge/imaging"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/images"
)

// A reader parses settings and keeps the first error.
type reader struct {
	c   *cli.Context
	err error
}

// value gives a setting as text. One that is set to nothing counts as not set,
// since clients' configs often hold empty strings.
func (r *reader) value(name string) string {
	if v := strings.Trim(strings.TrimSpace(r.c.String(name)), `"`); v != "" {
		return v
	}
	return settingOf(name).Value
}

func settingOf(name string) Setting {
	i := slices.IndexFunc(All, func(s Setting) bool { return s.Name == name })
	if i < 0 {
		panic("no setting " + name + ": add it to All")
	}
	return All[i]
}

// fail records that a setting cannot be read, under both of its names.
func (r *reader) fail(name, format string, args ...any) {
	r.refuse(name, fmt.Errorf("%q is %s", r.value(name), fmt.Sprintf(format, args...)))
}

// oneOf reads one of some words, in any case.
func (r *reader) oneOf(name string, words ...string) string {
	v := strings.ToLower(r.value(name))
	if !slices.Contains(words, v) {
		r.fail(name, "none of %s", strings.Join(words, ", "))
	}
	return v
}

// refuse is fail with an error that explains itself.
func (r *reader) refuse(name string, err error) {
	if r.err == nil {
		r.err = console.Invalidf("setting --%s (%s): %w", name, settingOf(name).Env, err)
	}
}

func (r *reader) duration(name string) time.Duration {
	d, err := parseDuration(r.value(name))
	if err != nil {
		r.fail(name, "%v", err)
	}
	return d
}

// startTimeout reads how long servers may take to start. Who starts Claude Code with
// MCP_TIMEOUT, because a server is slow, need not say it again.
func (r *reader) startTimeout(name string) time.Duration {
	d := r.duration(name)
	if ms, err := strconv.Atoi(os.Getenv("MCP_TIMEOUT")); err == nil && (!r.c.IsSet(name) || r.c.String(name) == "") {
		d = max(d, time.Duration(min(ms, int(24*time.Hour/time.Millisecond)))*time.Millisecond)
	}
	return d
}

// parseDuration takes seconds as a bare number, or a Go duration.
func parseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if n, nerr := strconv.ParseFloat(s, 64); nerr == nil && n > 0 && n < 1e9 {
		d, err = time.Duration(n*float64(time.Second)), nil
	}
	if err != nil {
		return 0, fmt.Errorf("not a time; write 30, 30s or 2m")
	}
	if d <= 0 {
		return 0, fmt.Errorf("too short: a time must be greater than 0")
	}
	return d, nil
}

func (r *reader) bytes(name string) int64 {
	n := r.size(name)
	if n < minMemory {
		r.fail(name, "too small: Python needs at least %dm", minMemory>>20)
	}
	return n
}

func (r *reader) size(name string) int64 {
	n, err := ParseBytes(r.value(name))
	if err != nil {
		r.fail(name, "%v", err)
	}
	return n
}

func (r *reader) platform(name string) string {
	v := r.value(name)
	if _, err := images.ParsePlatform(v); v != "" && err != nil {
		r.fail(name, "%v", err)
	}
	return v
}

// modules reads names of Python modules.
func (r *reader) modules(name string) []string {
	names := strings.FieldsFunc(r.value(name), func(c rune) bool { return c == ',' || c == ' ' })
	for _, n := range names {
		if !moduleName.MatchString(n) {
			r.fail(name, "no list of Python modules such as numpy,pandas: %q", n)
		}
	}
	return names
}

var moduleName = regexp.MustCompile(`^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$`)

func (r *reader) pictures() imaging.Limits {
	l := imaging.Limits{Count: r.whole("pictures", 0, math.MaxInt16), Side: r.whole("picture-size", 16, math.MaxInt16), Bytes: int(r.size("picture-bytes"))}
	if l.Count == 0 {
		l.Count = imaging.None
	}
	if l.Bytes < 4<<10 || l.Bytes > 10<<20 {
		r.fail("picture-bytes", "not between 4k and 10m")
	}
	return l
}

// whole reads a whole number.
func (r *reader) whole(name string, least, most int) int {
	n, err := strconv.Atoi(r.value(name))
	switch wrong := err != nil || n < least || n > most; {
	case wrong && most == math.MaxInt32:
		r.fail(name, "not a whole number of at least %d", least)
	case wrong:
		r.fail(name, "not a whole number from %d to %d", least, most)
	}
	return n
}

func (r *reader) registries() Registries {
	mirrors, plain, err := images.ParseMirrors(r.value("registry-mirrors"))
	if err != nil {
		r.refuse("registry-mirrors", err)
	}
	plain = append(plain, strings.FieldsFunc(r.value("insecure-registries"), func(c rune) bool { return c == ',' || c == ' ' })...)
	return Registries{mirrors, plain, r.value("registry-ca"), r.value("authfile")}
}

// minMemory is the least memory with which a sandbox starts.
const minMemory = 16 << 20

// ParseBytes reads a size in bytes, with k, m, g or t for powers of 1024, as
// podman and docker take them.
func ParseBytes(s string) (int64, error) {
	t := strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(s), "b"), "i")
	shift := 0
	if i := strings.IndexAny(t, "kmgt"); i >= 0 && i == len(t)-1 {
		shift = map[byte]int{'k': 10, 'm': 20, 'g': 30, 't': 40}[t[i]]
		t = t[:i]
	}
	n, err := strconv.ParseFloat(t, 64)
	if err != nil || !(n > 0 && n*float64(int64(1)<<shift) <= 1<<60) { // ParseFloat takes NaN
		return 0, fmt.Errorf("not a size; write a number with k, m or g, such as 512m")
	}
	return int64(n * float64(int64(1)<<shift)), nil
}

// maxSessions keeps the total memory of sessions within reason.
const maxSessions = 64

func (r *reader) cpus(name string) float64 {
	v := r.value(name)
	if v == "" {
		return 0
	}
	n, err := strconv.ParseFloat(v, 64)
	if err != nil || !(n >= 0.01 && n <= 10000) { // ParseFloat takes NaN
		r.fail(name, "not a number of processors such as 1.5")
	}
	return n
}

func (r *reader) user(name string) (uid, gid uint32) {
	u, g, ok := strings.Cut(r.value(name), ":")
	if !ok {
		g = u
	}
	un, err1 := strconv.ParseUint(u, 10, 31)
	gn, err2 := strconv.ParseUint(g, 10, 31)
	if err1 != nil || err2 != nil || un == 0 || gn == 0 {
		r.fail(name, "not UID:GID, two numbers above 0")
	}
	return uint32(un), uint32(gn)
}

func (r *reader) output(name string) bridge.OutputMode {
	m, err := bridge.ParseOutputMode(r.value(name))
	if err != nil {
		r.fail(name, "none of compact, toon, json")
	}
	return m
}

func (r *reader) outputBytes(name string) int {
	n := r.size(name)
	if n < 1<<10 || n > 1<<20 {
		r.fail(name, "not a size from 1k to 1m")
	}
	return int(n)
}

func (r *reader) level(name string) slog.Level {
	v := strings.ToUpper(r.value(name))
	switch v { // names that only Python's logging has
	case "WARNING":
		v = "WARN"
	case "CRITICAL":
		v = "ERROR"
	}
	var l slog.Level
	if err := l.UnmarshalText([]byte(v)); err != nil {
		r.fail(name, "none of DEBUG, INFO, WARN, ERROR")
	}
	return l
}

func (r *reader) boolean(name string) bool {
	switch strings.ToLower(r.value(name)) {
	case "1", "true", "yes", "on":
		return true
	case "0", "false", "no", "off":
		return false
	}
	r.fail(name, "neither 1 nor 0")
	return false
}
