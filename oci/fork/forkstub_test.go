package fork

import (
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// stubPreamble makes a ForkStub as fork.py does, without a sandbox around it.
const stubPreamble = `
import ctypes, os, sys
names = {"__name__": "fork"}
source = open("fork.py").read()
exec(source[:source.rindex("main()")], names)
libc = ctypes.CDLL(None, use_errno=True)
stub = names["ForkStub"](ctypes, libc, bytes.fromhex(sys.argv[1]), int(sys.argv[2]))
before, after, worker, words = stub.before, stub.after, stub.worker, names["words"]
flags = names["VM"] | names["VFORK"] | 17
r, w = os.pipe()
def end():
    os.close(w)
    return b"".join(iter(lambda: os.read(r, 1000), b""))
`

func TestForkStub(t *testing.T) {
	const python = "/usr/bin/python3"
	if _, err := os.Stat(python); err != nil {
		t.Skip("needs the host's own Python")
	}
	code, entry := forkStub()
	for name, tt := range map[string]struct{ code, want string }{
		"three processes": {`
fd = before.add("opening", libc.open, b"/proc/self/stat", 0)
before.add("moving", libc.dup2, fd, 50)
before.add("forking", libc.fork)
after.add("becoming cat", libc.execve, b"/bin/sh", words(after.place(b"sh"), after.place(b"-c"), after.place(b"echo another program >&%d" % w), 0), words(0))
worker.add("writing", libc.write, w, b"worker\n", 7, least=7)
os.set_inheritable(w, True)
here = [os.getpid()]
pid = stub(flags)
if pid == 0:
    os.write(w, b"%s %d\n" % (sys.implementation.name.encode(), os.getppid() != here[0]))
    here[0] = 0
    os._exit(0)
os.waitpid(pid, 0)
print(sorted(end().decode().split("\n")), stub.failure(pid), here[0] == os.getpid(), os.path.exists("/proc/self/fd/50"))
`, "['', 'another program', 'cpython 1', 'worker'] None True False\n"},
		"a failure before the fork": {`
before.add("entering nowhere", libc.chdir, b"/nowhere")
before.add("forking", libc.fork)
for _ in range(2):
    pid = stub(flags)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), stub.failure(pid), stub.failure(pid))
`, strings.Repeat("125 entering nowhere: No such file or directory None\n", 2)},
		"too little": {`
before.add("reading", libc.read, os.open("/dev/null", 0), words(0), 8, least=8)
before.add("forking", libc.fork)
print(stub.failure(stub(flags)).split(":")[0])
`, "reading\n"},
		"a failure that is allowed": {`
before.add("making /", libc.mkdir, b"/", 0o777, least=-1)
before.add("forking", libc.fork)
after.add("becoming true", libc.execve, b"/bin/true", words(after.place(b"true"), 0), words(0))
pid = stub(flags)
if pid == 0: os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), stub.failure(pid))
`, "0 None\n"},
		"a failure of the fork": {`
before.add("forking", libc.fork)
after.add("becoming true", libc.execve, b"/bin/true", words(after.place(b"true"), 0), words(0))
worker.add("opening nothing", libc.open, b"/nowhere", 0)
pid = stub(flags)
if pid == 0:
    os.write(w, stub.failure(0).encode())
    os._exit(0)
os.waitpid(pid, 0)
print(end().decode(), stub.failure(pid))
`, "opening nothing: No such file or directory None\n"},
		"no process": {`
print(stub.failure(stub(0x800)))
`, "making a process: Invalid argument\n"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := exec.Command(python, "-c", stubPreamble+tt.code, hex.EncodeToString(code), fmt.Sprint(entry)).CombinedOutput()
			if err != nil || string(out) != tt.want {
				t.Errorf("%s, %v; want %s", out, err, tt.want)
			}
		})
	}
}
