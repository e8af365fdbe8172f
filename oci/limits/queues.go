package limits

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

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
