package mcpproxy

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/statefile"
)

// Policy is what the user allows code to call, as one file says it. The file
// is read again when it has changed, at the next run. A file that cannot be
// understood allows nothing. A nil *Policy allows everything.
type Policy struct {
	file     string
	required bool
	log      *slog.Logger
	now      func() time.Time

	mu      sync.Mutex
	seen    fileStamp
	rules   *rules
	err     error
	minutes map[limitKey]*window // outlive a change of the file
}

// LoadPolicy reads a policy file. One that is required must be there; without
// another everything is allowed, until there is one. What is wrong with the
// file is for Err to say, and for every call that it forbids.
func LoadPolicy(file string, required bool, log *slog.Logger) *Policy {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	p := &Policy{file: file, required: required, log: log, now: time.Now, minutes: map[limitKey]*window{}}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refresh()
	return p
}

// Err says what is wrong with the file as it is now: then nothing may be called.
func (p *Policy) Err() error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refresh()
	return p.err
}

// Sections says how many sections the file has, and ok whether there is one.
func (p *Policy) Sections() (n int, ok bool) {
	if p == nil {
		return 0, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rules == nil {
		return 0, p.err != nil
	}
	return len(p.rules.sections), true
}

// Strays names the sections that are about none of these servers: a name with
// a slip in it protects nothing.
func (p *Policy) Strays(servers []ServerStatus) (sections []string) {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refresh()
	if p.rules == nil {
		return nil
	}
	for _, sec := range p.rules.sections {
		if !slices.ContainsFunc(servers, func(s ServerStatus) bool { return sec.about(config.Server{Name: s.Name, Alias: s.Alias}) }) && !sec.servers.everything() {
			sections = append(sections, sec.name)
		}
	}
	return sections
}

// A Run is one run under a policy: the rules as they were when it began, and
// how often it has called what. A nil *Run may call everything.
type Run struct {
	policy *Policy
	rules  *rules // nil allows everything
	err    error  // not nil allows nothing
	counts map[limitKey]int
}

// NewRun begins a run. It looks whether the file has changed.
func (p *Policy) NewRun() *Run {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refresh()
	return &Run{policy: p, rules: p.rules, err: p.err, counts: map[limitKey]int{}}
}

// CheckServer asks for leave to read something else than tools of a server,
// such as a resource. It counts as one call of the server.
func (r *Run) CheckServer(s config.Server) error {
	if err := r.Barred(s); err != nil || r == nil || r.rules == nil {
		return err
	}
	return r.count(r.rules.serverLimits(s))
}

// Barred says whether nothing of a server may be used, which is worth to know
// before it is started. It counts nothing.
func (r *Run) Barred(s config.Server) error {
	switch {
	case r == nil:
		return nil
	case r.err != nil:
		return fmt.Errorf("%w: until that is mended nothing may be called", r.err)
	case r.rules == nil:
		return nil
	}
	return r.rules.barred(s)
}

// admit asks for leave to call a tool, and counts the call if it is given.
func (r *Run) admit(s config.Server, t Tool) error {
	if err := r.Barred(s); err != nil || r == nil || r.rules == nil {
		return err
	}
	if err := r.rules.check(s, t); err != nil {
		return err
	}
	return r.count(append(r.rules.serverLimits(s), r.rules.toolLimits(s, t)...))
}

// A fileStamp tells one state of a file from another.
type fileStamp struct {
	there bool
	inode uint64
	size  int64
	mtime time.Time
	ctime syscall.Timespec // also changes with the mode
	fault string
}

func stampOf(file string) (fileStamp, fs.FileInfo) {
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return fileStamp{}, nil
	}
	if err != nil {
		return fileStamp{there: true, fault: statefile.Reason(err)}, nil
	}
	st := fileStamp{there: true, size: info.Size(), mtime: info.ModTime()}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		st.inode, st.ctime = sys.Ino, sys.Ctim
	}
	return st, info
}

// refresh reads the file if it is not as it was. p.mu is held.
func (p *Policy) refresh() {
	now, info := stampOf(p.file)
	switch {
	case now == p.seen && (now.there || !p.required || p.err != nil):
		return
	case !now.there:
		p.rules, p.err = nil, nil
		switch {
		case p.seen.there:
			p.err = fmt.Errorf("policy %s: the file was there and is gone; put it back, or start toolcell again", p.name())
		case p.required:
			p.err = fmt.Errorf("policy %s: there is no such file; write it, or name another", p.name())
		}
	case now.fault != "":
		p.rules, p.err = nil, fmt.Errorf("policy %s: %s", p.name(), now.fault)
	default:
		// One that was there and vanishes is not taken for leave to do anything.
		p.required = true
		p.rules, p.err = readRules(p.file, p.name())
		p.warn(info)
	}
	p.seen = now
	if p.err != nil {
		p.log.Error("nothing may be called until the policy is mended", "err", p.err)
	}
}

// warn says who else could change what is allowed.
func (p *Policy) warn(info fs.FileInfo) {
	if info.Mode().Perm()&0o022 != 0 {
		p.log.Warn("others may write to the policy: chmod go-w "+p.file, "file", p.file)
	}
	if dir, err := os.Stat(filepath.Dir(p.file)); err == nil && dir.Mode().Perm()&0o022 != 0 && dir.Mode()&os.ModeSticky == 0 {
		p.log.Warn("others may replace the policy: chmod go-w "+filepath.Dir(p.file), "file", p.file)
	}
}

// name is the file as people write it.
func (p *Policy) name() string {
	if home, err := os.UserHomeDir(); err == nil && home != "/" {
		if rest, ok := strings.CutPrefix(p.file, home+"/"); ok {
			return "~/" + rest
		}
	}
	return p.file
}
