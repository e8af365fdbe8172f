package oci

import (
	"context"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/toolcell/toolcell/oci/container"
	"github.com/toolcell/toolcell/oci/host"
	"github.com/toolcell/toolcell/oci/pool"
	"github.com/toolcell/toolcell/oci/spec"
	"github.com/toolcell/toolcell/oci/template"
	"golang.org/x/sys/unix"
)

// eachKind calls f with a lab for each way to start a sandbox.
func eachKind(t *testing.T, f func(t *testing.T, l *lab)) {
	t.Run("cold", func(t *testing.T) {
		f(t, newLab(t, pool.Options{}, nil, map[string]string{}))
	})
	t.Run("container", func(t *testing.T) {
		l := newLab(t, pool.Options{Start: pool.StartContainer, Max: 1}, nil, map[string]string{})
		l.run(t, "pass")
		l.wait(t)
		f(t, l)
	})
	t.Run("fork", func(t *testing.T) {
		f(t, forksHere(t, nil, map[string]string{}))
	})
}

// streams makes the streams of p, and gives what reads its output: the end comes
// once no copy of them is open.
func streams(t *testing.T, p *Process) io.Reader {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	errs, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	p.Stdout, p.Stderr = w, errs
	if err := r.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return r
}

// sendCode has the program of a lab run code.
func sendCode(c net.Conn, code string) {
	n := len(code)
	_, _ = c.Write(append([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}, code...))
}

// TestEndOfContextKills, which is no error.
func TestEndOfContextKills(t *testing.T) {
	eachKind(t, func(t *testing.T, l *lab) {
		p := l.p
		out := streams(t, &p)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		p.Control = func(c net.Conn) {
			t.Cleanup(func() { c.Close() })
			sendCode(c, "print('up', flush=True)\nimport time; time.sleep(600)")
			go func() {
				_, _ = io.ReadFull(out, make([]byte, 3))
				cancel()
			}()
		}
		exit, err := l.r.Run(ctx, p)
		if err != nil || exit.Signal != unix.SIGKILL || exit.OOM {
			t.Errorf("exit %+v, %v", exit, err)
		}
	})
}

// TestStreamsAreClosed whether the sandbox starts or not.
func TestStreamsAreClosed(t *testing.T) {
	eachKind(t, func(t *testing.T, l *lab) {
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for name, tt := range map[string]struct {
			ctx     context.Context
			prepare func(p *Process)
			starts  bool
		}{
			"started":        {t.Context(), func(*Process) {}, true},
			"context over":   {ended, func(*Process) {}, false},
			"no such folder": {t.Context(), func(p *Process) { p.Root.Dir = "/nowhere/at/all" }, false},
		} {
			t.Run(name, func(t *testing.T) {
				p := l.p
				p.Control = func(c net.Conn) {
					sendCode(c, "pass")
					c.Close()
				}
				out := streams(t, &p)
				tt.prepare(&p)
				_, err := l.r.Run(tt.ctx, p)
				if (err == nil) != tt.starts {
					t.Errorf("started: %v", err)
				}
				if b, err := io.ReadAll(out); err != nil || len(b) > 0 {
					t.Errorf("read %q, %v, want the end", b, err)
				}
				if err := p.Stdout.Close(); err == nil {
					t.Error("stdout is still open")
				}
				if err := p.Stderr.Close(); err == nil {
					t.Error("stderr is still open")
				}
			})
		}
	})
}

// A deadForks is a template whose forks have ended before they are used.
type deadForks struct {
	*template.Template
	made chan<- struct{}
}

func (d deadForks) Fork(now bool) (*container.Standby, error) {
	s, err := d.Template.Fork(now)
	if err == nil {
		kill(s, d.made)
	}
	return s, err
}

// kill ends a standby sandbox, which still looks as if it were alive.
func kill(s *container.Standby, made chan<- struct{}) {
	s.Kill()
	_, _ = s.Wait()
	s.Alive = func() bool { return true }
	made <- struct{}{}
}

// TestDeadStandbyFallsBackToAColdStart: nothing of the run has happened in it.
func TestDeadStandbyFallsBackToAColdStart(t *testing.T) {
	for _, kind := range []string{pool.StartContainer, pool.StartFork} {
		t.Run(kind, func(t *testing.T) {
			if kind == pool.StartFork {
				forksHere(t, nil, map[string]string{})
			}
			l := newLab(t, pool.Options{}, nil, map[string]string{})
			made := make(chan struct{}, 100)
			l.r.pool = pool.New(l.r.containers, pool.Source{
				MemoryAvailable: host.MemoryAvailable,
				Template: func(p spec.Process, h spec.Host) (pool.Template, error) {
					tmpl, err := template.New(l.r.containers, p, h)
					return deadForks{tmpl, made}, err
				},
				Container: func(p spec.Process, h spec.Host) (*container.Standby, []string, error) {
					s, notes, err := template.NewStandby(l.r.containers, p, h)
					if err == nil {
						kill(s, made)
					}
					return s, notes, err
				},
			})
			l.r.Keep(pool.Options{Start: kind, Max: 1, Idle: time.Minute})
			l.r.Warm(l.p)
			l.wait(t)
			l.wants(t, "print("+isFork+")", "False\n")
			if len(made) == 0 {
				t.Error("no sandbox was ready")
			}
		})
	}
}

// TestSessionLeavesTheRunningCountAtOnce: it is kept for hours, and the pool
// holds as many sandboxes ready as were at work.
func TestSessionLeavesTheRunningCountAtOnce(t *testing.T) {
	l := newLab(t, pool.Options{Start: pool.StartContainer, Max: 2}, nil, map[string]string{})
	for name, tt := range map[string]struct {
		kept bool
		want int
	}{"run": {false, 1}, "session": {true, 0}} {
		t.Run(name, func(t *testing.T) {
			p := l.p
			out := streams(t, &p)
			p.Kept = tt.kept
			running := -1
			p.Control = func(c net.Conn) {
				defer c.Close()
				sendCode(c, "print('up', flush=True)")
				_, _ = io.ReadFull(out, make([]byte, 3))
				running = l.r.pool.State().Running
			}
			if _, err := l.r.Run(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			if after := l.r.pool.State().Running; running != tt.want || after != 0 {
				t.Errorf("%d at work, then %d; want %d, then 0", running, after, tt.want)
			}
		})
	}
}
