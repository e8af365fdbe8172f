package oci

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
	"github.com/toolcell/toolcell/oci/host"
	"github.com/toolcell/toolcell/oci/pid1"
	"github.com/toolcell/toolcell/oci/spec"
)

// An engine starts containers for one server. It is safe for concurrent use.
type engine struct {
	dir    string // of this instance: libcontainer's state of each sandbox
	lock   *os.File
	spread atomic.Uint32 // which processors the next sandbox gets, where that limits them

	uid, gid uint32
	mounts   []spec.Mount
	once     sync.Once
	mu       sync.Mutex // guards what follows, once the host was probed, and lock
	host     spec.Host
	hostErr  error
	copied   string // this program, if sandboxes need a copy of it

	jobs   sync.WaitGroup // what goes on beside runs
	life   context.Context
	cancel context.CancelFunc
}

// newEngine makes a folder of its own in dir for the state of containers, and
// ends and removes what servers that were killed have left there.
func newEngine(dir string, uid, gid uint32) (*engine, error) {
	own, lock, err := openInstance(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the sandbox state folder %q: %w", dir, err)
	}
	// libcontainer logs to a logger of its own what it also returns as errors.
	logrus.SetOutput(io.Discard)
	go host.WarmCgroupMoves()
	e := &engine{dir: own, lock: lock, uid: uid, gid: gid}
	e.life, e.cancel = context.WithCancel(context.Background())
	return e, nil
}

// setMounts makes all containers show these. It is called before the first
// starts.
func (e *engine) setMounts(ms []spec.Mount) { e.mounts = ms }

// stop ends what is being started, and waits for all that goes on beside runs.
func (e *engine) stop() {
	e.cancel()
	e.waitForJobs()
}

// waitForJobs waits for all that goes on beside runs.
func (e *engine) waitForJobs() { e.jobs.Wait() }

// close stops and removes the state folder of this instance.
func (e *engine) close() error {
	e.stop()
	err := os.RemoveAll(e.dir)
	return errors.Join(err, e.lock.Close())
}

// job does something beside everything else, and before close returns.
func (e *engine) job(do func()) {
	e.jobs.Add(1)
	go func() {
		defer e.jobs.Done()
		do()
	}()
}

// later does so after a while.
func (e *engine) later(after time.Duration, do func()) {
	e.jobs.Add(1)
	time.AfterFunc(after, func() {
		defer e.jobs.Done()
		do()
	})
}

// atStop has a function called when the engine stops, unless the function that
// it returns is called before.
func (e *engine) atStop(do func()) (cancel func() bool) {
	return context.AfterFunc(e.life, do)
}

// probe looks at the host once, and says what its sandboxes are shown and may
// call.
func (e *engine) probe() (spec.Host, error) {
	e.once.Do(func() {
		h, err := host.Probe(e.uid, e.gid)
		if err == nil {
			e.host, err = spec.NewHost(h, e.mounts)
		}
		e.hostErr = err
		sweepProbes(h.Cgroup)
	})
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.host, e.hostErr
}

// start starts p in a fresh sandbox, with these streams.
func (e *engine) start(p spec.Process, stdout, stderr *os.File, h spec.Host) (*Container, pid1.Lifeline, spec.Host, error) {
	line, err := pid1.NewLifeline()
	if err != nil {
		return nil, line, h, err
	}
	files := [3]*os.File{stdout, stderr, line.Theirs}
	c, process, err := e.launch(p, files, h)
	if procRefused(err) && !h.NoProc {
		h = e.withoutProc()
		c, process, err = e.launch(p, files, h)
	}
	if idMapRefused(err) && !h.NoIDMap {
		h = e.withoutIDMaps()
		c, process, err = e.launch(p, files, h)
	}
	line.Theirs.Close()
	if err != nil {
		line.Close()
		return nil, line, h, &startError{Err: err, Host: h.Host, Dir: e.dir, Root: p.Root.Dir}
	}
	return &Container{c, process}, line, h, nil
}

// A startError is that of a start that failed, with what it needed of the host.
type startError struct {
	Err       error
	Host      host.Host
	Dir, Root string // the state folder, and that of the root file system
}

func (e *startError) Error() string { return e.Err.Error() }
func (e *startError) Unwrap() error { return e.Err }
