package settings

import (
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/state"
)

// fixed are the settings that count at the next start: which files toolcell reads, where it keeps its
// own, what it records there, and how much of it works at once. All others count for the next run when a file has changed.
var fixed = append([]string{"servers-config", "policy", "state-dir", "allow-self-server", "sessions", "log-json", "runtime"}, ForRecord...)

// ofEnvironment are the settings of what code runs in: images, packages and sandboxes. The log level
// is one of them since other processes work on these.
var ofEnvironment = append([]string{"image", "uv", "container-user", "mounts", "project", "start", "idle-timeout"}, ForImages...)

// EnvironmentKey is the same for settings of one process for which code runs in the same things.
func (s Settings) EnvironmentKey() string {
	key := []string{strconv.FormatBool(s.ImageNamed), fmt.Sprint(s.Mounts)}
	for _, name := range ofEnvironment {
		key = append(key, s.values[name].Text)
	}
	return strings.Join(key, "\x00")
}

// Live are the settings of a process during whose life the user's file and a project's may change.
// They are safe for concurrent use.
type Live struct {
	project string // its folder
	log     *slog.Logger

	mu      sync.Mutex
	started Settings
	user    *File // as it last could be used
	seen    [2]seenFile
	now     Settings
	note    string   // for the user
	waiting []string // settings that count at the next start
}

// A seenFile tells one state of a file from another, also if it cannot be reached.
type seenFile struct {
	state.Stamp
	fault string // why there is no stamp
}

func look(path string) seenFile {
	stamp, err := state.StampOf(path)
	if err != nil {
		return seenFile{fault: state.Reason(err)}
	}
	return seenFile{Stamp: stamp}
}

// Watch returns the settings of a process that began with s, in a project's folder, if dir names one.
// Its log has each error of the files once.
func (s Settings) Watch(dir string, log *slog.Logger) *Live {
	l := &Live{project: dir, log: log, started: s, user: s.src.user, now: s}
	l.update()
	l.started = l.now
	return l
}

// Now returns the settings as the files have them now, as far as these can be used: of a user's file
// that cannot, the last that could counts, and a project's that cannot does not count.
func (l *Live) Now() Settings {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.update() {
		l.sayWhatWaits()
	}
	return l.now
}

// update reads the files if they are not as they were, or if mounts have come or gone. l.mu is held.
func (l *Live) update() bool {
	seen := [2]seenFile{look(UserFile()), look(projectFile(l.project))}
	if seen == l.seen && !l.now.mountsMoved() {
		return false
	}
	l.seen = seen
	if err := contain.Call("reading the settings", l.refresh); err != nil {
		l.log.Error("the settings have a mistake; the last good ones stay in effect", "err", err)
		l.note = "the settings now have a mistake, so the earlier ones stay in effect: " + err.Error()
	}
	return true
}

// refresh reads the files. l.mu is held.
func (l *Live) refresh() error {
	src := l.started.src
	src.project = nil
	user, err := readUserFile()
	if err == nil {
		src.user = user
		_, err = read(src)
	}
	if err != nil {
		src.user = l.user
	}
	now, errLast := read(src)
	if errLast != nil { // what it depends on has changed, such as a folder
		return errLast
	}
	l.user, l.note = src.user, ""
	now, wrong := now.InProject(l.project)
	if wrong != nil {
		l.log.Warn("the project's settings are ignored", "err", wrong)
	}
	l.now = now
	return err
}

// sayWhatWaits logs which settings are not those of the start any more and will count at the next one.
// l.mu is held.
func (l *Live) sayWhatWaits() {
	var names []string
	for _, k := range All {
		if l.now.values[k.Name].Text != l.started.values[k.Name].Text && slices.Contains(fixed, k.Name) {
			names = append(names, k.Name)
		}
	}
	if len(names) > 0 && !slices.Equal(names, l.waiting) {
		l.log.Warn("these settings have changed and take effect after a restart", "settings", names)
	}
	l.waiting = names
}

// Note returns what the user is to be told about the settings, in the result of a run.
func (l *Live) Note() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.note
}
