package console

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
)

// Stopped is the error that says which signal ended the program.
type Stopped struct{ Signal syscall.Signal }

func (s Stopped) Error() string { return fmt.Sprintf("stopped by a signal (%v)", s.Signal) }

// Code returns the exit code of a process that the signal ended, as shells count it.
func (s Stopped) Code() int { return 128 + int(s.Signal) }

// shutdownGrace is how long an orderly shutdown may take once the user asks again.
// Nothing keeps running if it is cut short: sandboxes and servers end with this
// process, and the next start sweeps their folders.
const shutdownGrace = time.Second

// Signals shut the program down in order. While the prompt of exec -i is open,
// it handles interrupts.
type Signals struct {
	cancel   context.CancelCauseFunc
	incoming chan os.Signal

	mu        sync.Mutex
	interrupt func() // what SIGINT does instead, if not nil
	first     *Stopped
}

// WatchSignals returns a context that ends, with a Stopped error as its cause,
// when a signal asks the program to end. Stop undoes it.
func WatchSignals(parent context.Context) (ctx context.Context, s *Signals, stop func()) {
	s = &Signals{incoming: make(chan os.Signal, 4)}
	ctx, s.cancel = context.WithCancelCause(parent)
	signal.Notify(s.incoming, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	done := make(chan struct{})
	go func() {
		defer contain.Recover("waiting for signals", s.cancel)
		for {
			select {
			case sig := <-s.incoming:
				s.handle(sig.(syscall.Signal))
			case <-done:
				return
			}
		}
	}()
	return ctx, s, func() {
		signal.Stop(s.incoming)
		close(done)
		s.cancel(nil)
	}
}

func (s *Signals) handle(sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.first != nil:
		code := s.first.Code()
		time.AfterFunc(shutdownGrace, contain.Func("ending", func() { os.Exit(code) }))
	case sig == syscall.SIGINT && s.interrupt != nil:
		s.interrupt()
	default:
		s.first = &Stopped{sig}
		s.cancel(*s.first)
	}
}

// OnInterrupt makes interrupts call f until restore is called.
func (s *Signals) OnInterrupt(f func()) (restore func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.interrupt = f
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.interrupt = nil
	}
}

// Received returns the signal that ended the program, or nil.
func (s *Signals) Received() *Stopped {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first
}

// EndedByUser reports whether err only means that the user ended the program.
func EndedByUser(err error) bool {
	var stop Stopped
	return errors.As(err, &stop) || errors.Is(err, context.Canceled)
}
