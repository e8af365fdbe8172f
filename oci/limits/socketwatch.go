package limits

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/oci/host"
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
		b, err := host.ReadKernelFile(usage)
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

// maxQueueTable bounds what is read of a table of sockets, in bytes. Sockets that do
// not fit are charged as such.
const maxQueueTable = 1 << 20

// fewConnections is how many TCP sockets may go uncounted: at 10 MiB each, they hold no more
// than the free sockets (ip-sysctl, tcp_rmem and tcp_wmem).
const fewConnections = 8

// inQueues returns the memory of data that waits in the TCP connections of a process's
// network namespace; process is its directory in /proc. It is for sandboxes without a /proc,
// in which the growth of buffers cannot be limited (spec.Sysctls). It takes a millisecond or
// more.
func inQueues(process string) (total int64) {
	for _, table := range []string{"net/tcp", "net/tcp6"} {
		f, err := os.Open(filepath.Join(process, table))
		if err != nil {
			continue
		}
		total += queuesIn(io.LimitReader(f, maxQueueTable))
		f.Close()
	}
	return total
}

// queuesIn adds up the queues in a table (proc_pid_net(5)). The kernel takes up to two
// bytes of memory for one (tcp(7), tcp_adv_win_scale).
func queuesIn(table io.Reader) (total int64) {
	const state, queues, listening = 3, 4, "0A"
	for lines := bufio.NewScanner(table); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) <= queues || fields[state] == listening {
			continue
		}
		sent, received, _ := strings.Cut(fields[queues], ":")
		for _, n := range []string{sent, received} {
			if bytes, err := strconv.ParseInt(n, 16, 64); err == nil {
				total += 2 * bytes
			}
		}
	}
	return total
}
