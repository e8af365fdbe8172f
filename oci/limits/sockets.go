package limits

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
)

// socketInterval is the interval between checks of socket buffers if cgroup v1 counts them
// separately. Code can fill some 100 MB in between.
const socketInterval = 50 * time.Millisecond

// A socketWatch kills a sandbox whose socket buffers grow to twice their limit
// (container.LimitSocketBuffers). The kernel keeps UDP to the limit, but it lets
// each TCP connection have a first packet each way, however many there are
// (net/core/sock.c, __sk_mem_raise_allocated).
type socketWatch struct{ *watching }

// run kills the sandbox once its buffers hold more than twice the limit, or if it cannot
// watch on.
func (w *socketWatch) run(limit int64) {
	defer close(w.ended)
	defer contain.Recover("watching the socket buffers of a sandbox", w.watch.fail)
	usage := "" // most runs end before it is needed
	for {
		if !w.pause(socketInterval) {
			return
		}
		resting := w.watch.rest.begun()
		if usage == "" {
			m, err := w.watch.s.Cgroup()
			if err != nil {
				return
			}
			usage = filepath.Join(m.Path("memory"), "memory.kmem.tcp.usage_in_bytes")
		}
		b, err := os.ReadFile(usage)
		if err != nil {
			return // it has ended, or the kernel does not count
		}
		if n, _ := strconv.ParseInt(string(bytes.TrimSpace(b)), 10, 64); n > 2*limit {
			w.watch.oom.Store(true)
			w.watch.killAtLimit()
			return
		}
		if resting != nil && !await(w.watching, resting) {
			return
		}
	}
}
