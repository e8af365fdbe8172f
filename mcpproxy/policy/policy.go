// Package policy decides what code may call of the user's servers, how often, and
// what only with the user's consent, by one TOML file of the user's, which Python packages
// its scripts may use, and which npm packages servers in sandboxes. An Enforcer grants hosts by the
// section about the network, which is that of hosts below it.
//
// The file is read again when it has changed, and a run keeps the rules that it
// began with. It fails closed: with a file that cannot be read or understood, or
// that has vanished, nothing may be called. Every refusal names the file, the
// section and the rule. Servers and tools are known here by name only. What the
// user wants to be asked about is an Ask; asking is the caller's.
package policy

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/state"
)

// Policy is what the user allows code to call, as one file says it. The file
// is read again when it has changed, at the next run. A file that cannot be
// understood allows nothing, nor does a nil *Policy.
type Policy struct {
	file     string
	required bool
	fixed    bool // it is a text, and not what the file has
	log      *slog.Logger
	now      func() time.Time

	mu      sync.Mutex
	seen    fileStamp
	rules   *rules
	err     error
	minutes map[limitKey][]time.Time // calls within the last minute, oldest first; outlive a change of the file
}

// Load reads a policy file. A required file must exist; while another does
// not exist, everything is allowed. Err, and the error of every call that is
// refused, explains a file that is not understood.
func Load(file string, required bool, log *slog.Logger) *Policy {
	log = cmp.Or(log, slog.New(slog.DiscardHandler))
	p := &Policy{file: file, required: required, log: log, now: time.Now, minutes: map[limitKey][]time.Time{}}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refresh()
	return p
}

// None returns the policy of a user who has none: everything is allowed.
func None() *Policy { return Load("", false, nil) } // no file has that name

// Err returns why the file cannot be used as it is now; nothing may be called then.
func (p *Policy) Err() error {
	_, err := p.current()
	return err
}

// current returns the rules of the file as it is now, nil without a file, or the error of Err.
func (p *Policy) current() (*rules, error) {
	if p == nil {
		return nil, errNoRules
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refresh()
	return p.rules, p.err
}

// StrictApprovals reports whether approvals in a terminal are refused that are not clearly a
// person's. Under a file that is not understood they are.
func (p *Policy) StrictApprovals() bool {
	r, err := p.current()
	return err != nil || r != nil && r.approvals == approvalsStrict
}

// Contents sum up a policy file.
type Contents struct {
	Sections     int      // about servers
	When         []string // sections that ask, depending on arguments, as the file has them
	NetworkRules int
}

// Contents sums up the file. It returns nil without a file, or if it is not understood.
func (p *Policy) Contents() *Contents {
	r, err := p.current()
	if r == nil || err != nil {
		return nil
	}
	c := &Contents{Sections: len(r.sections), NetworkRules: r.network.Count()}
	for _, sec := range r.sections {
		for _, ts := range sec.tools {
			if len(ts.When) > 0 {
				c.When = append(c.When, ts.whenName())
			}
		}
	}
	return c
}

// A fileStamp tells one state of the policy file from another, also if it is not there or cannot be reached.
type fileStamp struct {
	state.Stamp
	there bool
	fault string // why there is no stamp
}

func stampOf(file string) fileStamp {
	stamp, err := state.StampOf(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if link := deadLink(file); link != "" { // there is a policy, on a disk that is not mounted, say
			return fileStamp{there: true, fault: link + " is a link to nothing"}
		}
		return fileStamp{}
	case err != nil:
		return fileStamp{there: true, fault: state.Reason(err)}
	}
	return fileStamp{Stamp: stamp, there: true}
}

// deadLink returns the link that leads nowhere at which a path ends, or "".
func deadLink(file string) string {
	for ; ; file = filepath.Dir(file) {
		info, err := os.Lstat(file)
		switch {
		case err == nil && info.Mode()&fs.ModeSymlink != 0:
			if _, err := os.Stat(file); err != nil {
				return file
			}
			return ""
		case err == nil || file == filepath.Dir(file):
			return ""
		}
	}
}

// refresh reads the file if it is not as it was. p.mu is held.
func (p *Policy) refresh() {
	if p.fixed {
		return
	}
	now := stampOf(p.file)
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
		// A file that was there and vanishes does not allow everything.
		p.required = true
		p.rules = nil
		p.err = contain.Call("reading the policy", func() (err error) {
			p.rules, err = readRules(p.file, p.name())
			return err
		})
		p.warn(fs.FileMode(now.Mode))
	}
	p.seen = now
	if p.err != nil {
		p.rules = nil
		p.log.Error("nothing may be called until the policy is fixed", "err", p.err)
	}
}

// warn logs whether other users could change the policy.
func (p *Policy) warn(mode fs.FileMode) {
	if mode.Perm()&0o022 != 0 {
		p.log.Warn("others may write to the policy: chmod go-w "+p.file, "file", p.file)
	}
	if dir, err := os.Stat(filepath.Dir(p.file)); err == nil && dir.Mode().Perm()&0o022 != 0 && dir.Mode()&os.ModeSticky == 0 {
		p.log.Warn("others may replace the policy: chmod go-w "+filepath.Dir(p.file), "file", p.file)
	}
}

// name is the file as people write it.
func (p *Policy) name() string {
	if p == nil || p.file == "" {
		return "the policy file"
	}
	if home, err := os.UserHomeDir(); err == nil && home != "/" {
		if rest, ok := strings.CutPrefix(p.file, home+"/"); ok {
			return "~/" + rest
		}
	}
	return p.file
}
