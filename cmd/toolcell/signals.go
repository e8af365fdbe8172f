package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// A stopped error says which signal ended the program.
type stopped struct{ signal syscall.Signal }

func (s stopped) Error() string { return fmt.Sprintf("stopped by a signal (%v)", s.signal) }

// code is what a shell gives for a process that a signal ended.
func (s stopped) code() int { return 128 + int(s.signal) }

// shutdownGrace is how long the orderly end may take once the user asks again. Nothing
// runs on if it is cut short: sandboxes and servers end with this process, and
// the next start sweeps their folders.
const shutdownGrace = time.Second

// signals end the program in good order. While a prompt is there an interrupt
// is the prompt's.
type signals struct {
	end  context.CancelCauseFunc
	came chan os.Signal

	mu        sync.Mutex
	interrupt func() // what SIGINT does instead, if not nil
	first     *stopped
}

// watchSignals gives a context that ends, with a stopped error as its cause,
// when a signal asks the program to. Stop undoes it.
func watchSignals(parent context.Context) (ctx context.Context, s *signals, stop func()) {
	s = &signals{came: make(chan os.Signal, 4)}
	ctx, s.end = context.WithCancelCause(parent)
	signal.Notify(s.came, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case sig := <-s.came:
				s.take(sig.(syscall.Signal))
			case <-done:
				return
			}
		}
	}()
	return ctx, s, func() {
		signal.Stop(s.came)
		close(done)
		s.end(nil)
	}
}

func (s *signals) take(sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.first != nil:
		code := s.first.code()
		time.AfterFunc(shutdownGrace, func() { os.Exit(code) })
	case sig == syscall.SIGINT && s.interrupt != nil:
		s.interrupt()
	default:
		s.first = &stopped{sig}
		s.end(*s.first)
	}
}

// onInterrupt lets f do what an interrupt does, until restore is called.
func (s *signals) onInterrupt(f func()) (restore func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.interrupt = f
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.interrupt = nil
	}
}

// got gives the signal that ended the program, nil if none did.
func (s *signals) got() *stopped {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first
}

// silent reports whether err says no more than that the user ended the program.
func silent(err error) bool {
	var stop stopped
	return errors.As(err, &stop) || errors.Is(err, context.Canceled)
}
