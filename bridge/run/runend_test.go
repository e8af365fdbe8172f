package run

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolcell/toolcell/bridge/bridgetest"
	"github.com/toolcell/toolcell/oci"
)

// TestAnswerDoesNotWaitForTheKernel: a runner that has said that it has ended
// is believed, though its ends of the pipes are still open, and everything that
// it wrote before is there.
func TestAnswerDoesNotWaitForTheKernel(t *testing.T) {
	text := strings.Repeat("x", 60<<10) // what a pipe holds
	s := newServer(t, nil, func(o *Options) {
		o.MaxOutput = 1 << 20
		o.Sandboxes = startFunc(func(ctx context.Context, p oci.Process) (Sandbox, error) {
			kept, err := syscall.Dup(int(p.Stdout.Fd()))
			if err != nil {
				return nil, err
			}
			t.Cleanup(func() { syscall.Close(kept) })
			ours, theirs := net.Pipe()
			t.Cleanup(func() { theirs.Close() })
			go func() {
				for _, frame := range []string{`{"type":"ready"}`, "", `{"type":"done"}`, `{"type":"end","exitCode":7}`} {
					if frame == "" { // the code has come
						var head [4]byte
						_, _ = io.ReadFull(theirs, head[:])
						_, _ = io.CopyN(io.Discard, theirs, int64(binary.BigEndian.Uint32(head[:])))
						_, _ = p.Stdout.WriteString(text)
						continue
					}
					_, _ = fmt.Fprintf(theirs, "%c%c%c%c%s", 0, 0, 0, len(frame), frame)
				}
			}()
			sb := bridgetest.StartFake(ctx, func(ctx context.Context, finished <-chan int) (oci.Exit, error) {
				defer p.Stdout.Close()
				defer p.Stderr.Close()
				select {
				case code := <-finished:
					return oci.Exit{Code: code}, nil
				case <-ctx.Done():
					return oci.Exit{Code: 137, Signal: syscall.SIGKILL}, nil
				}
			})
			sb.Socket = ours
			return sb, nil
		})
	})
	start := time.Now()
	r := s.Do(t.Context(), Request{Code: "pass"})
	if r.ExitCode == nil || *r.ExitCode != 7 || len(r.Stdout) != 1 || r.Stdout[0] != text {
		t.Errorf("exit code %v, status %s, %d lines", r.ExitCode, r.Status, len(r.Stdout))
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
}

// TestEndBeforeTheCodeIsDone breaks off, as any frame where it may not come.
func TestEndBeforeTheCodeIsDone(t *testing.T) {
	s := newServer(t, nil, nil)
	r := s.Do(t.Context(), Request{Code: `import os; os.write(3, b'\0\0\0\x0e{"type":"end"}'); import time; time.sleep(20)`})
	if r.Status != StatusError || !strings.Contains(r.Error, "where it may not come") {
		t.Errorf("%s: %s", r.Status, r.Error)
	}
}
