package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/oci/host"
	"github.com/toolcell/toolcell/oci/pid1"
	"github.com/toolcell/toolcell/oci/spec"
)

// A Runtime starts containers for one server. It is safe for concurrent use.
type Runtime struct {
	dir    string // this instance's: libcontainer's state of each sandbox
	lock   *os.File
	spread atomic.Uint32 // processors given out, if that is how CPU time is limited

	uid, gid uint32
	mounts   []spec.Mount
	once     sync.Once
	mu       sync.Mutex // guards the fields below, once the host was probed, and lock
	host     spec.Host
	hostErr  error
	copied   string          // the copy of this program, if sandboxes need one
	uids     *host.IDSlots   // nil until the host was probed
	cgroup   *instanceCgroup // the same, and nil where we make no cgroups

	jobs   sync.WaitGroup // background work
	life   context.Context
	cancel context.CancelFunc
}

// Open creates a folder in dir for the state of containers, and ends and removes sandboxes
// that killed servers left there.
func Open(dir string, uid, gid uint32) (*Runtime, error) {
	own, lock, err := openInstance(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the sandbox state folder %q: %w", dir, err)
	}
	// libcontainer logs the errors that it returns to a logger of its own, too.
	logrus.SetOutput(io.Discard)
	go func() {
		defer contain.Recover("preparing moves between cgroups", nil)
		host.WarmCgroupMoves()
	}()
	r := &Runtime{dir: own, lock: lock, uid: uid, gid: gid}
	r.life, r.cancel = context.WithCancel(context.Background())
	return r, nil
}

// Mount adds mounts to all containers. It is called before the first one starts.
func (r *Runtime) Mount(ms []spec.Mount) { r.mounts = ms }

// Stop ends starts in progress and waits for background work.
func (r *Runtime) Stop() {
	r.cancel()
	r.WaitForJobs()
}

// WaitForJobs waits for background work.
func (r *Runtime) WaitForJobs() { r.jobs.Wait() }

// Close stops and removes the state folder of this instance.
func (r *Runtime) Close() error {
	r.Stop()
	err := os.RemoveAll(r.dir)
	r.cgroup.close()
	if r.uids != nil {
		err = errors.Join(err, r.uids.Close())
	}
	return errors.Join(err, r.lock.Close())
}

// AcquireUID returns a host ID for the code of one sandbox, nil if there are none. The
// caller releases it once everything in the sandbox has ended.
func (r *Runtime) AcquireUID(from host.IDRange) *host.IDSlot {
	if from.Size <= 0 {
		return nil
	}
	return r.uids.Acquire()
}

// UIDNotes returns what the user should know about the host ids of sandboxes.
func (r *Runtime) UIDNotes() []string { return r.uids.Notes() }

// Go runs a function in the background; Close waits for it.
func (r *Runtime) Go(do func()) {
	r.jobs.Go(contain.Func("working for sandboxes in the background", do))
}

// Later runs a function in the background after a delay.
func (r *Runtime) Later(after time.Duration, do func()) {
	r.jobs.Add(1)
	time.AfterFunc(after, func() {
		defer r.jobs.Done()
		defer contain.Recover("working for sandboxes in the background", nil)
		do()
	})
}

// AtStop registers a function to be called when the runtime stops. The returned function
// cancels that.
func (r *Runtime) AtStop(do func()) (cancel func() bool) {
	return context.AfterFunc(r.life, contain.Func("stopping a sandbox", do))
}

// Host probes the host once, and returns it with the mounts and filters of its sandboxes.
func (r *Runtime) Host() (spec.Host, error) {
	r.once.Do(func() {
		defer contain.Recover("probing the host", func(err error) { r.hostErr = err })
		h, err := host.Probe(r.uid, r.gid)
		sweepProbes(h.Cgroup)
		if err == nil {
			// On an error, cgroups are made beside those of other servers.
			if r.cgroup, _ = openInstanceCgroup(h.Cgroup); r.cgroup != nil {
				h.Cgroup.Instance = r.cgroup.name
			}
		}
		if err == nil {
			r.host, err = spec.NewHost(h, r.mounts)
		}
		r.hostErr = err
		r.uids = host.OpenIDSlots(r.host.OwnUIDs, h.EUID)
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.host, r.hostErr
}

// Streams are the standard streams of a process; nil is /dev/null.
type Streams struct{ Stdin, Stdout, Stderr *os.File }

// Close closes our copies; closing them twice does no harm.
func (s Streams) Close() {
	for _, f := range []*os.File{s.Stdin, s.Stdout, s.Stderr} {
		if f != nil {
			f.Close()
		}
	}
}

// Start starts p in a fresh sandbox, with these streams. It also returns the host as it has
// turned out to be.
func (r *Runtime) Start(p spec.Process, streams Streams, h spec.Host) (Started, spec.Host, error) {
	line, err := pid1.NewLifeline()
	if err != nil {
		return Started{}, h, err
	}
	started := false
	defer func() {
		line.Theirs.Close()
		if !started {
			line.Close() // which ends a sandbox that has begun
		}
	}()
	contain.Point("starting a sandbox")
	again := func(noProc, noIDMap bool) (c *Container, err error) {
		if h, err = r.learn(h, noProc, noIDMap).Serving(p.Server); err != nil {
			return nil, err
		}
		return r.launchAlone(p, streams, line.Theirs, h)
	}
	c, err := r.launchAlone(p, streams, line.Theirs, h)
	if procRefused(err) && !h.NoProc {
		c, err = again(true, false)
	}
	if idMapRefused(err) && !h.NoIDMap {
		c, err = again(false, true)
	}
	if errors.Is(err, errNewMount) || bindRefused(err) {
		c, err = r.launchAlone(p, streams, line.Theirs, h)
	}
	if p.Project != nil && (errors.Is(err, errNewMount) || coverRefused(err)) {
		err = fmt.Errorf("%w: %w", ErrProjectChanged, err)
	}
	if errors.Is(err, ErrProjectChanged) {
		return Started{}, h, err
	}
	if err != nil {
		return Started{}, h, &StartError{Err: err, Host: h.Host, Dir: r.dir, Root: p.Root.Dir}
	}
	started = true
	return Started{Sandbox: c, Lifeline: line}, h, nil
}

// launchAlone is launch with a host ID that no other sandbox has. A template whose forks
// have their own IDs needs none: no user code runs in it.
func (r *Runtime) launchAlone(p spec.Process, streams Streams, lifeline *os.File, h spec.Host) (*Container, error) {
	var uid *host.IDSlot
	if !p.Template || h.ForkUIDs().Size <= 0 {
		uid = r.AcquireUID(h.CodeUIDs())
	}
	if uid != nil {
		h = h.WithUID(uid.ID)
	}
	c, process, err := r.launch(p, streams, lifeline, h)
	if err != nil {
		uid.Release()
		return nil, err
	}
	return newContainer(c, process, uid), nil
}

// Pin limits a sandbox to cpus processors, all if 0, and leaves one processor to the host.
// It is for hosts on which no cgroup limits CPU time, and is called while the first process
// still waits, so that everything in the sandbox inherits it. seccomp keeps the code from
// changing it.
func (r *Runtime) Pin(pid int, cpus float64) error { return pin(pid, cpus, &r.spread) }
