package bridge

import "github.com/toolcell/toolcell/bridge/output"

// sparePipes keeps pipes ready for the next run, so that it need not wait for the
// kernel to make them.
type sparePipes struct {
	limit int // bytes kept of each stream
	spare chan *output.Pipes
	done  <-chan struct{} // of the server
}

func newSparePipes(limit int, done <-chan struct{}) *sparePipes {
	return &sparePipes{limit: limit, spare: make(chan *output.Pipes, 1), done: done}
}

// take returns the spare pipes, or new ones.
func (p *sparePipes) take() (*output.Pipes, error) {
	select {
	case w := <-p.spare:
		return w, nil
	default:
		return output.Open(p.limit)
	}
}

// refill makes pipes for the next run, unless there are some.
func (p *sparePipes) refill() {
	if len(p.spare) > 0 {
		return
	}
	w, err := output.Open(p.limit)
	if err != nil {
		return // the next run reports it
	}
	select {
	case p.spare <- w:
	default:
		w.Close()
	}
	select {
	case <-p.done:
		p.close()
	default:
	}
}

// close closes the spare pipes. The server has ended.
func (p *sparePipes) close() {
	select {
	case w := <-p.spare:
		w.Close()
	default:
	}
}
