package oci

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/toolcell/toolcell/oci/container"
	"github.com/toolcell/toolcell/oci/fork"
	"github.com/toolcell/toolcell/oci/host"
	"github.com/toolcell/toolcell/oci/ocitest"
	"github.com/toolcell/toolcell/oci/spec"
	"golang.org/x/sys/unix"
)

// eachKind calls f with a lab for each way to start a sandbox.
func eachKind(t *testing.T, f func(t *testing.T, l *lab)) {
	t.Run("cold", func(t *testing.T) {
		f(t, newLab(t, PoolOptions{}, nil, map[string]string{}))
	})
	t.Run("container", func(t *testing.T) {
		l := newLab(t, PoolOptions{Start: StartContainer, Max: 1}, nil, map[string]string{})
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
func sendCode(sb *Sandbox, code string) {
	n := len(code)
	_, _ = sb.Conn().Write(append([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}, code...))
}

// start has a sandbox of the lab run code, which first prints "up", and returns
// once it has.
func (l *lab) start(ctx context.Context, t *testing.T, p Process, code string) (sb *Sandbox, out io.Reader) {
	t.Helper()
	out = streams(t, &p)
	sb, err := l.r.Start(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sb.Close() })
	sendCode(sb, "print('up', flush=True)\n"+code)
	if _, err := io.ReadFull(out, make([]byte, len("up\n"))); err != nil {
		t.Fatal(err)
	}
	return sb, out
}

const sleep = "import time; time.sleep(600)"

// TestEndOfContextKills, which is no error.
func TestEndOfContextKills(t *testing.T) {
	eachKind(t, func(t *testing.T, l *lab) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		sb, _ := l.start(ctx, t, l.p, sleep)
		cancel()
		exit, err := sb.Wait()
		if err != nil || exit.Signal != unix.SIGKILL || exit.OOM {
			t.Errorf("exit %+v, %v", exit, err)
		}
	})
}

// TestEndOfContextWhileItStarts: there may be a sandbox by then, or none.
func TestEndOfContextWhileItStarts(t *testing.T) {
	eachKind(t, func(t *testing.T, l *lab) {
		for after := time.Duration(0); after < 50*time.Millisecond; after = 2*after + time.Millisecond {
			p := l.p
			out := streams(t, &p)
			ctx, cancel := context.WithTimeout(t.Context(), after)
			sb, err := l.r.Start(ctx, p)
			switch {
			case err == nil:
				if exit, err := sb.Wait(); err != nil || exit.Signal != unix.SIGKILL {
					t.Errorf("ended after %s: exit %+v, %v", after, exit, err)
				}
				sb.Close()
			case !errors.Is(err, context.DeadlineExceeded):
				t.Errorf("ended after %s: %v", after, err)
			}
			if _, err := io.ReadAll(out); err != nil {
				t.Errorf("the streams are open: %v", err)
			}
			cancel()
		}
	})
}

// TestWaitMayBeCalledAgain, also at once, and after Close.
func TestWaitMayBeCalledAgain(t *testing.T) {
	eachKind(t, func(t *testing.T, l *lab) {
		sb, _ := l.start(t.Context(), t, l.p, "raise SystemExit(7)")
		var all sync.WaitGroup
		wait := func() {
			if exit, err := sb.Wait(); err != nil || exit != (Exit{Code: 7}) {
				t.Errorf("exit %+v, %v", exit, err)
			}
		}
		for range 4 {
			all.Go(wait)
		}
		all.Wait()
		if err := sb.Close(); err != nil {
			t.Error(err)
		}
		wait()
	})
}

// TestCloseKillsAndWaits, and does no harm a second time.
func TestCloseKillsAndWaits(t *testing.T) {
	eachKind(t, func(t *testing.T, l *lab) {
		sb, out := l.start(t.Context(), t, l.p, sleep)
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				if err := sb.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if _, err := io.ReadAll(out); err != nil {
			t.Errorf("a process is left: %v", err)
		}
		if exit, err := sb.Wait(); err != nil || exit.Signal != unix.SIGKILL || exit.OOM {
			t.Errorf("exit %+v, %v", exit, err)
		}
		if sb.Conn().Close() == nil || sb.Workspace().Close() == nil {
			t.Error("a descriptor of the sandbox is still open")
		}
	})
}

// TestFinishedCountsOnce: Wait believes the first code, and the rest is killed.
func TestFinishedCountsOnce(t *testing.T) {
	eachKind(t, func(t *testing.T, l *lab) {
		sb, out := l.start(t.Context(), t, l.p, sleep)
		sb.Finished(7)
		sb.Finished(8)
		if exit, err := sb.Wait(); err != nil || exit != (Exit{Code: 7}) {
			t.Errorf("exit %+v, %v", exit, err)
		}
		sb.Finished(9)
		if exit, err := sb.Wait(); err != nil || exit.Code != 7 {
			t.Errorf("then exit %+v, %v", exit, err)
		}
		if _, err := io.ReadAll(out); err != nil {
			t.Errorf("a process is left: %v", err)
		}
	})
}

// TestSignalReachesTheProcess, and no other process once it has ended.
func TestSignalReachesTheProcess(t *testing.T) {
	eachKind(t, func(t *testing.T, l *lab) {
		sb, out := l.start(t.Context(), t, l.p, `
import signal, time
heard = []
signal.signal(signal.SIGURG, lambda *a: heard.append(1))
print("listens", flush=True)
while not heard: time.sleep(.01)
print("heard", flush=True)`)
		if _, err := io.ReadFull(out, make([]byte, len("listens\n"))); err != nil {
			t.Fatal(err)
		}
		sb.Signal(unix.SIGURG)
		if b, err := io.ReadAll(out); err != nil || string(b) != "heard\n" {
			t.Errorf("read %q, %v", b, err)
		}
		if exit, err := sb.Wait(); err != nil || exit != (Exit{}) {
			t.Errorf("exit %+v, %v", exit, err)
		}
		sb.Signal(unix.SIGURG)
	})
}

// TestProcessWithoutControl has neither socket nor workspace.
func TestProcessWithoutControl(t *testing.T) {
	sb, err := openRuntime(t).Start(t.Context(), Process{Root: ocitest.HostRoot(t), Args: []string{"/bin/true"}})
	if err != nil {
		t.Fatal(err)
	}
	if sb.Conn() != nil || sb.Workspace() != nil {
		t.Error("there is a socket or a workspace")
	}
	if exit, err := sb.Wait(); err != nil || exit != (Exit{}) {
		t.Errorf("exit %+v, %v", exit, err)
	}
	if err := sb.Close(); err != nil {
		t.Error(err)
	}
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
				out := streams(t, &p)
				tt.prepare(&p)
				sb, err := l.r.Start(tt.ctx, p)
				if (err == nil) != tt.starts {
					t.Errorf("started: %v", err)
				}
				if p.Stdout.Close() == nil || p.Stderr.Close() == nil {
					t.Error("a stream is still open")
				}
				if sb != nil {
					sb.Close()
				}
				if b, err := io.ReadAll(out); err != nil || len(b) > 0 {
					t.Errorf("read %q, %v, want the end", b, err)
				}
			})
		}
	})
}

// A deadForks is a template whose forks have ended before they are used.
type deadForks struct {
	*fork.Template
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
	for _, kind := range []string{StartContainer, StartFork} {
		t.Run(kind, func(t *testing.T) {
			if kind == StartFork {
				forksHere(t, nil, map[string]string{})
			}
			l := newLab(t, PoolOptions{}, nil, map[string]string{})
			made := make(chan struct{}, 100)
			l.r.pool = newPool(l.r.containers, poolSource{
				MemoryAvailable: host.MemoryAvailable,
				Template: func(p spec.Process, h spec.Host) (template, error) {
					tmpl, err := fork.NewTemplate(l.r.containers, p, h)
					return deadForks{tmpl, made}, err
				},
				Container: func(p spec.Process, h spec.Host) (*container.Standby, []string, error) {
					s, notes, err := fork.NewStandby(l.r.containers, p, h)
					if err == nil {
						kill(s, made)
					}
					return s, notes, err
				},
			})
			l.r.KeepStandbys(PoolOptions{Start: kind, Max: 1, Idle: time.Minute})
			l.r.Warm(t.Context(), l.p)
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
	l := newLab(t, PoolOptions{Start: StartContainer, Max: 2}, nil, map[string]string{})
	for name, want := range map[string]int{"run": 1, "session": 0} {
		t.Run(name, func(t *testing.T) {
			p := l.p
			p.Session = name == "session"
			sb, _ := l.start(t.Context(), t, p, sleep)
			if running := l.r.pool.State().Running; running != want {
				t.Errorf("%d at work, want %d", running, want)
			}
			sb.Close()
			if running := l.r.pool.State().Running; running != 0 {
				t.Errorf("%d at work after it", running)
			}
		})
	}
}
