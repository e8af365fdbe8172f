package bridge

import (
	"time"

	"github.com/toolcell/toolcell/bridge/output"
)

// afterAnswer is how long what makes ready for the next run waits, so that it
// does not take the processor from the answer.
const afterAnswer = 2 * time.Millisecond

// takePipes returns the spare pipes, or new ones.
func (s *Server) takePipes() (*output.Pipes, error) {
	select {
	case w := <-s.spare:
		return w, nil
	default:
		return output.Open(s.o.MaxOutput)
	}
}

// makeSpare makes pipes for the next run, unless there are some.
func (s *Server) makeSpare() {
	if len(s.spare) > 0 || s.life.Err() != nil {
		return
	}
	w, err := output.Open(s.o.MaxOutput)
	if err != nil {
		return // the next run reports it
	}
	select {
	case s.spare <- w:
	default:
		w.Close()
	}
	if s.life.Err() != nil {
		s.dropSpare()
	}
}

// dropSpare closes the spare pipes when the server ends.
func (s *Server) dropSpare() {
	select {
	case w := <-s.spare:
		w.Close()
	default:
	}
}
