package fork

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/oci/container"
	"github.com/toolcell/toolcell/oci/limits"
	"github.com/toolcell/toolcell/oci/spec"
	"golang.org/x/sys/unix"
)

// A zygote is a sandbox in which fork.py has imported modules and waits: a template, from
// which others are forked, or a standby for a single use.
type zygote struct {
	container.Started // Workspace belongs to the standby, and is closed in a template
	h                 spec.Host
	output            *outputTail
	notes             []string       // modules that could not be preloaded, and why
	ended             chan struct{}  // closed when its first process has ended
	exit              container.Exit // valid then
	err               error
}

// A zygoteConfig configures fork.py.
type zygoteConfig struct {
	Program  string            `json:"program"`
	Base     []string          `json:"base"`
	Preload  []string          `json:"preload"`
	Template bool              `json:"template"`
	UID      uint32            `json:"uid"`
	GID      uint32            `json:"gid"`
	Filter   string            `json:"filter"`
	Stub     string            `json:"stub"`
	Entry    int               `json:"entry"`
	Mounts   [][4]any          `json:"mounts"` // where, what, flags, options; "bind" is what the template has there
	Readable []string          `json:"readable"`
	Writable []string          `json:"writable"`
	Masked   []string          `json:"masked"`
	Covered  []string          `json:"covered"`
	Readonly []string          `json:"readonly"`
	Resolver bool              `json:"resolver"` // the root has a /etc/resolv.conf
	Sysctl   map[string]string `json:"sysctl"`
	RLimits  [][2]uint64       `json:"rlimits"`
	Nice     int               `json:"nice"`
}

// newZygoteConfig describes the same sandbox for forks as spec.New does for
// containers: both use the same lists.
func newZygoteConfig(p spec.Process, h spec.Host, template bool) (zygoteConfig, error) {
	c := zygoteConfig{
		Program: p.Python.Program, Base: append([]string{}, p.Python.Base...), Preload: append([]string{}, p.Python.Preload...),
		Template: template, UID: h.InsideUID, GID: h.InsideGID,
	}
	if !template {
		return c, nil
	}
	filter, err := filterProgram(h.Seccomp)
	if err != nil {
		return c, err
	}
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	c.Filter = hex.EncodeToString(filter)
	code, entry := forkStub()
	c.Stub, c.Entry = hex.EncodeToString(code), entry
	for _, t := range spec.Writable {
		c.Mounts = append(c.Mounts, [4]any{t.Dest, "tmpfs", flags, strings.Join(append(t.Options(), t.Mode), ",")})
	}
	for _, m := range h.Mounts {
		if spec.OnTmpfs(m.Target) {
			c.Mounts = append(c.Mounts, [4]any{m.Target, "bind", 0, ""})
		}
	}
	if p.Top, err = container.TopNames(p.Root.Dir); err != nil {
		return c, err
	}
	c.Resolver = container.HasResolver(p.Root)
	c.Readable, c.Writable, c.Covered = spec.Readable(p, h), h.WritableTargets(), spec.CoveredFiles
	c.Mounts = append(c.Mounts, [4]any{"/proc", "proc", flags, ""})
	// A fork has no /sys, and the template has covered everything outside
	// /proc.
	c.Masked = slices.DeleteFunc(spec.MaskedPaths(h), func(path string) bool { return !spec.InProc(path) })
	c.Readonly = slices.DeleteFunc(slices.Clone(spec.ReadonlyPaths), func(path string) bool { return !spec.InProc(path) })
	c.Sysctl, c.Nice = spec.Sysctls(h), spec.Niceness(h)
	for _, l := range spec.Rlimits(p.Limits, h) {
		c.RLimits = append(c.RLimits, [2]uint64{uint64(spec.RlimitNumbers[l.Type]), l.Hard})
	}
	return c, nil
}

// startProgram starts fork.py in a fresh sandbox, either as a template or to
// wait for its single use.
func startProgram(e *container.Runtime, p spec.Process, h spec.Host, template bool) (_ *zygote, err error) {
	if p.Root, err = e.RoomFor(p.Root, h); err != nil {
		return nil, err
	}
	config, err := newZygoteConfig(p, h, template)
	if err != nil {
		return nil, err
	}
	file, err := scriptFile(e)
	if err != nil {
		return nil, err
	}
	output, err := newOutputTail()
	if err != nil {
		return nil, err
	}
	p.Binds = append(slices.Clone(p.Binds), spec.Bind{Source: file, Target: scriptPath})
	p.Args = append(slices.Clone(p.Python.Interpreter), scriptPath)
	p.Control, p.Template = true, template
	if template {
		un := spec.UncountedBy(h.Cgroup)
		un.Template = true
		if h.TemplateSeccomp, err = spec.SeccompProfile(un); err != nil {
			return nil, errors.Join(err, output.w.Close())
		}
		spec.LimitSetUID(h.TemplateSeccomp, h.InsideUID)
		// Forks have their own limits. These are for a few forks that are just being made,
		// and for threads of libraries during their start.
		p.Limits.PIDs = max(p.Limits.PIDs, 256)
		p.Limits.CPUs = 0
		if !h.Cgroup.PIDs {
			p.Limits.PIDs = 0 // the kernel would count the forks too
		}
	}
	c, h, err := e.Start(p, container.Streams{Stdout: output.w, Stderr: output.w}, h)
	output.w.Close()
	if err != nil {
		output.close()
		return nil, err
	}
	s := &zygote{Started: c, h: h, output: output, ended: make(chan struct{})}
	if p.Python.Alone {
		s.Watch = limits.Start(c, p.Limits, h.Host)
	}
	e.Go(func() {
		defer close(s.ended)
		defer contain.Recover("waiting for a sandbox", func(err error) {
			s.err = err
			c.Kill()
		})
		s.exit, s.err = c.Wait()
	})
	defer e.AtStop(c.Kill)()
	if s.Conn, s.Workspace, err = c.Lifeline.Receive(); err == nil {
		err = contain.Call("configuring a program that starts", func() error { return s.configure(config) })
	}
	if s.Workspace != nil && (err != nil || template) {
		s.Workspace.Close()
	}
	if err != nil {
		if words := s.destroy(); words != "" && !errors.As(err, new(*RefusedError)) {
			err = fmt.Errorf("%w: %s", err, words)
		}
		return nil, fmt.Errorf("starting %s ahead: %w", p.Python.Program, err)
	}
	return s, nil
}

// configure sends the configuration and waits until all is imported.
func (s *zygote) configure(c zygoteConfig) error {
	_ = s.Conn.SetDeadline(time.Now().Add(startTimeout))
	defer func() { _ = s.Conn.SetDeadline(time.Time{}) }()
	body, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if _, err := s.Conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)); err != nil {
		return err
	}
	var head [4]byte
	if _, err := io.ReadFull(s.Conn, head[:]); err != nil {
		return err
	}
	body = make([]byte, min(binary.BigEndian.Uint32(head[:]), maxAnswer))
	if _, err := io.ReadFull(s.Conn, body); err != nil {
		return err
	}
	return s.take(body)
}

// maxAnswer bounds the answer to a configuration, in bytes. Modules that are imported
// ahead may have written it.
const maxAnswer = 1 << 20

// maxNotes is how many modules are named that could not be preloaded.
const maxNotes = 100

// take reads the answer to the configuration.
func (s *zygote) take(body []byte) error {
	var answer struct {
		Refused, Module string
		Failed          map[string]string
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return err
	}
	failed := slices.Sorted(maps.Keys(answer.Failed))
	for _, name := range failed[:min(len(failed), maxNotes)] {
		s.notes = append(s.notes, fmt.Sprintf("module %q cannot be preloaded: %s", name, answer.Failed[name]))
	}
	if answer.Refused != "" {
		return &RefusedError{answer.Refused, answer.Module}
	}
	return nil
}

// destroy ends the sandbox and everything forked from it, and returns the end of
// its output.
func (s *zygote) destroy() string {
	if s.Conn != nil {
		s.Conn.Close()
	}
	s.Kill()
	s.Lifeline.Close()
	<-s.ended
	if s.Watch != nil {
		s.Watch.Stop()
	}
	words := s.output.close()
	_ = s.Sandbox.Destroy() // the next start sweeps what this cannot remove
	return words
}

// Gone reports whether it has ended.
func (s *zygote) Gone() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// writingScript serializes writing fork.py.
var writingScript sync.Mutex

// scriptFile writes fork.py to a place that can be mounted into sandboxes.
func scriptFile(e *container.Runtime) (string, error) {
	dir, err := e.StateDir()
	if err != nil {
		return "", fmt.Errorf("making the sandbox state folder again: %w", err)
	}
	writingScript.Lock()
	defer writingScript.Unlock()
	path := filepath.Join(dir, "fork.py")
	if have, err := os.ReadFile(path); err == nil && bytes.Equal(have, script) {
		return path, nil
	}
	if err := os.WriteFile(path, script, 0o444); err != nil {
		return "", fmt.Errorf("writing what starts programs ahead: %w", err)
	}
	return path, os.Chmod(path, 0o444) // whatever our umask is
}

// outputTail keeps the end of a zygote's output, for the error if it fails: the
// modules that it imports may print.
type outputTail struct {
	r, w *os.File
	text []byte
	done chan struct{}
}

func newOutputTail() (*outputTail, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	l := &outputTail{r: r, w: w, done: make(chan struct{})}
	go func() {
		defer close(l.done)
		defer contain.Recover("reading the output of a program that starts", nil)
		b := make([]byte, 4096)
		for {
			n, err := r.Read(b)
			if err != nil {
				return
			}
			l.text = append(l.text, b[:n]...)
			l.text = l.text[max(0, len(l.text)-2048):]
		}
	}()
	return l, nil
}

func (l *outputTail) close() string {
	_ = l.r.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	<-l.done
	l.r.Close()
	return strings.TrimSpace(string(l.text))
}
