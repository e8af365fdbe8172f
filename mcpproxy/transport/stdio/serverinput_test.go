package stdio

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"golang.org/x/sys/unix"
)

func inputPipe(t *testing.T) (server *os.File, p *Process) {
	t.Helper()
	server, stdin, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close(); stdin.Close() })
	return server, &Process{stdin: stdin}
}

// TestServerTakesALineAtOnce, as much as there is room for, or nothing; that is no error.
func TestServerTakesALineAtOnce(t *testing.T) {
	t.Parallel()
	server, p := inputPipe(t)
	line := []byte("a line\n")
	if n, err := p.writeNow(line); n != len(line) || err != nil {
		t.Fatalf("%d bytes, %v", n, err)
	}
	got := make([]byte, len(line))
	if _, err := io.ReadFull(server, got); err != nil || string(got) != string(line) {
		t.Errorf("the server reads %q, %v", got, err)
	}
	long := []byte(strings.Repeat("x", 1<<20))
	if n, err := p.writeNow(long); n == 0 || n == len(long) || err != nil {
		t.Errorf("%d bytes of a long line, %v", n, err)
	}
	if n, err := p.writeNow(line); n != 0 || err != nil {
		t.Errorf("%d bytes into a full pipe, %v", n, err)
	}
	server.Close()
	_, err := p.writeNow(line)
	for err == nil { // a process that another test is starting has the pipe too, until it runs
		time.Sleep(time.Millisecond)
		_, err = p.writeNow(line)
	}
	if !errors.Is(err, unix.EPIPE) {
		t.Errorf("a server that closed its input takes a line: %v", err)
	}
	p.stdin.Close()
	if _, err := p.writeNow(line); !errors.Is(err, os.ErrClosed) {
		t.Errorf("a closed pipe takes a line: %v", err)
	}
	if _, err := (&Process{}).writeNow(line); !errors.Is(err, os.ErrInvalid) {
		t.Errorf("without a pipe: %v", err)
	}
}

func TestServerTookItsInput(t *testing.T) {
	t.Parallel()
	server, p := inputPipe(t)
	if !p.tookInput() {
		t.Error("nothing was written, and it has not read that")
	}
	if _, err := io.WriteString(p.stdin, "ab"); err != nil {
		t.Fatal(err)
	}
	for _, took := range []bool{false, false, true} {
		if got := p.tookInput(); got != took {
			t.Errorf("it has read all of it: %v, want %v", got, took)
		}
		if !took {
			if _, err := server.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
		}
	}
	p.stdin.Close()
	if p.tookInput() {
		t.Error("its input is closed, and nobody knows that it read all")
	}
}

func TestServerThatDoesNotSpeakMCP(t *testing.T) {
	t.Parallel()
	lost := errors.New("lost")
	other := &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "no such thing"}
	unknown := &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "no\nsuch thing" + strings.Repeat("!", 1000)}
	for _, err := range []error{lost, other} {
		if got := notMCP(err); !errors.Is(got, err) || got.Error() != err.Error() {
			t.Errorf("%v became %v", err, got)
		}
	}
	got := notMCP(fmt.Errorf("initialize: %w", unknown))
	if !errors.Is(got, unknown) || !strings.HasPrefix(got.Error(), `it does not speak MCP: it answered "no such thing!`) ||
		!strings.HasSuffix(got.Error(), " to initialize") || len(got.Error()) > 300 {
		t.Error(got)
	}
}
