package limits

import (
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
)

func TestQueuesAreAddedUp(t *testing.T) {
	const table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n" +
		"   0: 0100007F:1F90 00000000:0000 0A 00000000:00000005 00:00000000 00000000     0        0 1 1\n" +
		"   1: 0100007F:1F90 0100007F:9C40 01 00000010:00000100 00:00000000 00000000     0        0 2 1\n" +
		"   2: 0100007F:9C40 0100007F:1F90 01 00001000:00000000 00:00000000 00000000     0        0 3 1\n" +
		"   3: 0100007F:9C40 0100007F:1F90 01 x:y 00:00000000\n   4:\n"
	if got := queuesIn(strings.NewReader(table)); got != 2*(0x10+0x100+0x1000) {
		t.Errorf("%d bytes", got)
	}
}

// TestQueuesOfThisProcess have what was sent and not read.
func TestQueuesOfThisProcess(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const sent = 50_000
	if _, err := io.WriteString(c, strings.Repeat("x", sent)); err != nil {
		t.Fatal(err)
	}
	if got := inQueues(fmt.Sprintf("/proc/%d", os.Getpid())); got < 2*sent {
		t.Errorf("%d bytes are counted, %d were sent", got, sent)
	}
}
