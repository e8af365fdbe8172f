package e2e

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	ocihost "github.com/toolcell/toolcell/oci/host"
	"golang.org/x/sys/unix"
)

//go:embed testdata/neighbour.py
var neighbourPy string

// trapVariable is a variable of the server's environment, the value a secret.
const trapVariable = "TOOLCELL_TEST_TRAP"

// traps are what code must not reach, on the host.
type traps struct {
	dir    string
	secret string         // of the server's environment
	values map[string]any // passed to the code: where the traps are

	mu   sync.Mutex
	hits []string
	ends []func() (touched []string) // checks that are made at the end
}

// hit notes that a trap was touched.
func (s *traps) hit(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hits = append(s.hits, what)
}

// touched names the traps that were.
func (s *traps) touched() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, check := range s.ends {
		s.hits = append(s.hits, check()...)
	}
	return s.hits
}

// code puts what the code is told in front of its text. JSON without true,
// false and null is Python.
func (s *traps) code(t *testing.T, text string, server int) string {
	t.Helper()
	values := maps.Clone(s.values)
	if score, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", server)); err == nil {
		values["oom_score_adj"], _ = strconv.Atoi(strings.TrimSpace(string(score)))
	}
	namespaces := map[string]string{}
	for _, name := range []string{"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"} {
		link, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", server, name))
		if err != nil {
			t.Fatal(err)
		}
		namespaces[name] = link
	}
	values["namespaces"] = namespaces
	body, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	return "TRAPS = " + string(body) + "\n" + text
}

// newSecret returns a text that cannot be guessed.
func newSecret() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // it does not fail
	return "trap-" + hex.EncodeToString(b)
}

// layTraps lays out everything but the neighbor, within reach of the user of
// that host.
func layTraps(t *testing.T, h *host) *traps {
	t.Helper()
	dir, err := os.MkdirTemp(shared, "traps-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	meminfo, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		t.Fatal(err)
	}
	uid := os.Getuid()
	if h.cred != nil {
		uid = int(h.cred.Uid)
	}
	id, key := filepath.Base(dir), int(markers.Add(1))<<8&0xff00|os.Getpid()&0xff
	s := &traps{dir: dir, secret: newSecret(), values: map[string]any{
		"variable": trapVariable, "hostname": name, "uid": uid,
		"granted_server": "search", "forbidden_server": "vault", "forbidden_tool": "list_directory",
		"memory":           ocihost.Number(meminfo, "MemTotal"), // kB
		"neighbour_stream": "neighbour-" + id, "neighbour_port": 20000 + key%20000, "neighbour_mark": marker(),
		"neighbour_key": 0x52430000 + key, "neighbour_queue": "/neighbour-" + id,
	}}
	s.layFile(t, "file", filepath.Join(dir, "file"), 0o644, uid)
	s.layFile(t, "private", filepath.Join(dir, "private"), 0o600, uid)
	s.layFile(t, "shm_name", "/dev/shm/toolcell-"+id, 0o644, uid)
	s.values["shm_name"] = "toolcell-" + id
	s.listen(t, "stream", "unix", "@stream-"+id)
	s.listen(t, "socket", "unix", filepath.Join(dir, "socket"))
	s.listen(t, "port", "tcp", "127.0.0.1:0")
	s.receive(t, "dgram", "unixgram", "@dgram-"+id)
	s.receive(t, "udp", "udp", "127.0.0.1:0")
	s.layProcess(t, h)
	s.laySegment(t, 0x52530000+key)
	return s
}

// layFile makes a file with a secret, which must stay as it is.
func (s *traps) layFile(t *testing.T, what, path string, mode fs.FileMode, uid int) {
	t.Helper()
	secret := newSecret()
	if err := errors.Join(os.WriteFile(path, []byte(secret), mode), os.Chmod(path, mode), os.Chown(path, uid, -1)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(path) })
	s.values[what] = path
	s.ends = append(s.ends, func() []string {
		st, err := os.Stat(path)
		if body, _ := os.ReadFile(path); err != nil || string(body) != secret || st.Mode() != mode {
			return []string{what}
		}
		return nil
	})
}

// listen makes a socket that no sandbox may connect to.
func (s *traps) listen(t *testing.T, what, network, address string) {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	s.values[what] = strings.TrimPrefix(address, "@")
	switch at := l.Addr().(type) {
	case *net.TCPAddr:
		s.values[what] = at.Port
	case *net.UnixAddr:
		if filepath.IsAbs(address) {
			if err := os.Chmod(address, 0o777); err != nil {
				t.Fatal(err)
			}
		}
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
			s.hit(what)
		}
	}()
}

// receive makes a socket that no sandbox may send to.
func (s *traps) receive(t *testing.T, what, network, address string) {
	t.Helper()
	c, err := net.ListenPacket(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	s.values[what] = strings.TrimPrefix(address, "@")
	if at, ok := c.LocalAddr().(*net.UDPAddr); ok {
		s.values[what] = at.Port
	}
	go func() {
		for {
			if _, _, err := c.ReadFrom(make([]byte, 64)); err != nil {
				return
			}
			s.hit(what)
		}
	}()
}

// layProcess starts a process of the user's, which must live on.
func (s *traps) layProcess(t *testing.T, h *host) {
	t.Helper()
	p := exec.Command("sleep", marker())
	p.SysProcAttr = &syscall.SysProcAttr{Credential: h.cred, Setpgid: true}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = p.Wait()
	}()
	t.Cleanup(func() {
		_ = p.Process.Kill()
		<-ended
	})
	s.values["pid"] = p.Process.Pid
	s.ends = append(s.ends, func() []string {
		select {
		case <-ended:
			return []string{"process"}
		case <-time.After(100 * time.Millisecond): // a signal may be under way
			return nil
		}
	})
}

// laySegment makes a System V shared memory segment with a secret.
func (s *traps) laySegment(t *testing.T, key int) {
	t.Helper()
	id, err := unix.SysvShmGet(key, 64, unix.IPC_CREAT|unix.IPC_EXCL|0o666)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) })
	memory, err := unix.SysvShmAttach(id, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	secret := newSecret()
	copy(memory, secret)
	s.values["shm_key"] = key
	s.ends = append(s.ends, func() []string {
		defer unix.SysvShmDetach(memory)
		if string(memory[:len(secret)]) != secret {
			return []string{"shared memory"}
		}
		return nil
	})
}

// moveIn starts the neighbor, another run of the same server, and waits until
// it has settled. The function that it gives ends it, and fails the test if it
// has ended before.
func (s *traps) moveIn(t *testing.T, c *client) (end func()) {
	t.Helper()
	values := maps.Clone(s.values)
	values["secret"] = newSecret()
	told := &traps{values: values}
	mark := s.values["neighbour_mark"].(string)
	ctx, cancel := context.WithCancel(t.Context())
	answer := make(chan string, 1)
	go func() {
		res, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "run_python", Arguments: map[string]any{
			"code": told.code(t, neighbourPy, os.Getpid()), "timeout": 600,
		}})
		if err != nil {
			answer <- err.Error()
			return
		}
		answer <- res.Content[0].(*mcp.TextContent).Text
	}()
	waitFor(t, "the neighbour", func() bool { return alive(mark) || len(answer) > 0 })
	return func() {
		t.Helper()
		lives := alive(mark)
		cancel()
		if text := <-answer; !lives {
			t.Errorf("the neighbour was touched, or ended: %s", text)
		}
	}
}
