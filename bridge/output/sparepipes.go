package output

// A Spare keeps pipes ready for the next run, so that it need not wait for the
// kernel to make them.
type Spare struct {
	limit int // bytes kept of each stream
	spare chan *Pipes
	done  <-chan struct{} // of the server
}

// NewSpare keeps no pipes yet, and none after done is closed. Of what goes through them, limit
// bytes are kept for a result.
func NewSpare(limit int, done <-chan struct{}) *Spare {
	return &Spare{limit: limit, spare: make(chan *Pipes, 1), done: done}
}

// Take returns the spare pipes, or new ones.
func (p *Spare) Take() (*Pipes, error) {
	select {
	case w := <-p.spare:
		return w, nil
	default:
		return Open(p.limit)
	}
}

// Refill makes pipes for the next run, unless there are some.
func (p *Spare) Refill() {
	if len(p.spare) > 0 {
		return
	}
	w, err := Open(p.limit)
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
		p.Close()
	default:
	}
}

// Close closes the spare pipes. The server has ended.
func (p *Spare) Close() {
	select {
	case w := <-p.spare:
		w.Close()
	default:
	}
}
