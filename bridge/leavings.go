package bridge

import (
	"os"
	"sync"
	"time"
)

// leavings are what a run leaves besides text: pictures, and files, which are
// in its /workspace until it has ended.
type leavings struct {
	s        *Server
	files    *runFiles
	pictures *pictures

	mu        sync.Mutex
	workspace *os.File
	err       error // why there is none
}

func (s *Server) newLeavings() *leavings {
	files := &runFiles{store: s.files}
	return &leavings{
		s: s, files: files,
		pictures: &pictures{life: s.life, limits: s.o.Pictures, decoder: s.decoder, files: files},
	}
}

// hold takes hold of the workspace of the sandbox.
func (l *leavings) hold(workspace *os.File, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.workspace, l.err = workspace, err
}

// tell puts all that is left into the result. Wires have been drained, and no
// call is being answered any more.
func (l *leavings) tell(r *Result, w *wires) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.workspace != nil {
		l.files.collect(l.workspace, nil)
	} else if l.err != nil {
		l.s.o.Log.Warn("files in /workspace/out cannot be kept here", "err", l.err)
	}
	w.stdout.whole.finish()
	w.stderr.whole.finish()
	l.pictures.finish()
	l.files.finish(r)
	l.pictures.tell(r)
	if r.folder != "" {
		l.s.cleanFiles()
	}
}

func (l *leavings) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.workspace != nil {
		l.workspace.Close()
	}
	l.pictures.rendering.Wait()
	l.files.close()
}

// cleanFiles removes files of old runs, beside everything else.
func (s *Server) cleanFiles() {
	s.runs.Add(1)
	go func() {
		defer s.runs.Done()
		s.files.clean(time.Now())
	}()
}
