package bridge

import (
	"errors"
	"io/fs"
	"time"
)

// leavings are what a run leaves besides text: pictures, and files, which are
// in the /workspace of its box.
type leavings struct {
	s        *Server
	box      *box
	files    *runFiles
	pictures *pictures
}

func (s *Server) newLeavings(b *box) *leavings {
	files := &runFiles{store: s.files}
	return &leavings{
		s: s, box: b, files: files,
		pictures: &pictures{life: s.life, limits: s.o.Pictures, decoder: s.decoder, files: files},
	}
}

// tell puts all that is left into the result. The run has ended: nothing more
// of it is taken in, and no call is being answered.
func (l *leavings) tell(r *Result) {
	if l.box.workspace != nil {
		l.files.collect(l.box.workspace, l.box.taken)
	} else if err := l.box.workspaceErr; err != nil && !errors.Is(err, fs.ErrNotExist) { // it ended before it had one
		l.s.o.Log.Warn("files in /workspace/out cannot be kept here", "err", err)
	}
	l.box.wires.Finish(l.files.addSpilled)
	l.pictures.finish()
	l.files.finish(r)
	l.pictures.tell(r)
	if r.folder != "" {
		l.s.cleanFiles()
	}
}

// close lets go of what a run has left that came to no result.
func (l *leavings) close() {
	l.pictures.rendering.Wait()
	l.files.close()
}

// cleanFiles removes files of old runs, beside everything else.
func (s *Server) cleanFiles() {
	s.runs.Go(func() {
		s.files.clean(time.Now())
	})
}
