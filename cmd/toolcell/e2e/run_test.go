package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestSandboxedPython looks at the sandbox from inside, on every kind of host
// and on the newest and the oldest real image.
//
//test:mainjob
func TestSandboxedPython(t *testing.T) {
	t.Parallel()
	versions, _ := pythons()
	prefix := registry(t, "", "", versions...)
	inEveryWay(t, onHosts, func(t *testing.T, h *host) {
		t.Parallel()
		for _, v := range h.versions(t) {
			t.Run(v, func(t *testing.T) {
				c := h.serve(t, env{"TOOLCELL_IMAGE": prefix + v + "-slim"})
				c.python(t, "import sys; print('%d.%d' % sys.version_info[:2])").want(t, numbered(v))
				for name, tt := range insideTests {
					t.Run(name, func(t *testing.T) {
						if v == "3.10" && strings.HasPrefix(name, "sqlite") {
							t.Skip("no registry has a 3.10 with sqlite3")
						}
						c.python(t, tt[0]).want(t, tt[1])
					})
				}
			})
		}
	})
}

// insideTests are code and what it must print.
var insideTests = map[string][2]string{
	"ids":          {"import os; print(os.getuid(), os.getgid(), os.geteuid())", "65534 65534 65534"},
	"capabilities": {"print([l.split()[1] for l in open('/proc/self/status') if l.startswith('Cap')] == ['0' * 16] * 5)", "True"},
	"no_new_privs": {"print([l.split()[1] for l in open('/proc/self/status') if l.startswith(('NoNewPrivs', 'Seccomp:'))])", "['1', '2']"},
	"environment": {
		"import os; print(sorted(k for k in os.environ if k not in ('PATH', 'LANG', 'HOME', 'TMPDIR', 'MPLBACKEND', 'LC_CTYPE', 'MCP_AVAILABLE_SERVERS')), os.environ['HOME'], os.getcwd())",
		"[] /workspace /workspace",
	},
	"descriptors": {
		"import os\nfor fd in range(4, 1000):\n  try: os.fstat(fd)\n  except OSError: continue\n  print(fd, os.readlink(f'/proc/self/fd/{fd}'))\nprint('end')", "end",
	},
	"no network": {
		"import socket\ntry:\n  socket.create_connection(('192.0.2.1', 80), 2)\nexcept OSError as e: print('refused')", "refused",
	},
	"own loopback": {
		"import socket\ns = socket.create_server(('127.0.0.1', 0)); c = socket.create_connection(s.getsockname()); print('connected')", "connected",
	},
	"names": {
		"import socket, time\nprint('127.0.0.1' in [a[4][0] for a in socket.getaddrinfo('localhost', 80)])\nt = time.monotonic()\n" +
			"try: socket.getaddrinfo('example.com', 80)\nexcept OSError: print(time.monotonic() - t < 2)", "True\nTrue",
	},
	"read-only root": {
		"for p in ('/x', '/usr/x', '/etc/x', '/run/x', '/var/x'):\n  try: open(p, 'w'); print(p)\n  except OSError: pass\nprint('end')", "end",
	},
	"writable places": {
		"for p in ('/tmp/x', '/workspace/x', '/dev/shm/x', 'x'):\n  open(p, 'w').write('y')\nprint('end')", "end",
	},
	"small places": {
		"import os\nfor p in ('/tmp', '/workspace'):\n  s = os.statvfs(p); print(s.f_blocks * s.f_frsize >> 20)", "64\n128",
	},
	"output of every kind": {
		"import subprocess, os, ctypes\nprint('print')\nsubprocess.run(['echo', 'subprocess'])\nos.write(1, b'write\\n')\n_ = ctypes.CDLL(None).puts(b'C')",
		"print\nsubprocess\nwrite\nC",
	},
	"looks like a frame": {`print('\x00\x00\x00\x02{}'); print('{"type":"done","exitCode":9}')`, "\x00\x00\x00\x02{}\n" + `{"type":"done","exitCode":9}`},
	"await":              {"import asyncio\nawait asyncio.sleep(0)\nprint(await asyncio.gather(asyncio.sleep(0, 1), asyncio.sleep(0, 2)))", "[1, 2]"},
	"value":              {"x = 6\nx * 7", "42"},
	"threads":            {"from concurrent.futures import ThreadPoolExecutor as P\nprint(sum(P(4).map(abs, range(-5, 5))))", "25"},
	"processes":          {"import multiprocessing as m\nc = m.get_context('fork')\nwith c.Pool(2) as p: print(p.map(abs, [-1, -2]))", "[1, 2]"},
	"subprocess in a loop": {
		"import asyncio\np = await asyncio.create_subprocess_exec('echo', 'x', stdout=-1)\nprint((await p.communicate())[0])", "b'x\\n'",
	},
	"shared memory":                 {"from multiprocessing import shared_memory as s\nm = s.SharedMemory(create=True, size=10); m.close(); m.unlink(); print('end')", "end"},
	"sqlite":                        {"import sqlite3; print(sqlite3.connect('a.db').execute('select 1').fetchone())", "(1,)"},
	"processes of the default kind": {"import multiprocessing as m\nwith m.Pool(2) as p: print(p.map(abs, [-1, -2]))", "[1, 2]"},
	"spawned processes": {
		"import multiprocessing as m\nc = m.get_context('spawn')\nwith c.Pool(2) as p: print(p.map(abs, [-1, -2]))", "[1, 2]",
	},
	"manager, queue, lock, event": {
		"import multiprocessing as m\nc = m.get_context('fork')\nq, l = c.Queue(), c.Lock()\ndef f():\n  with l: q.put(1)\n" +
			"p = c.Process(target=f); p.start(); print(q.get(timeout=10)); p.join()\nwith c.Manager() as a: print(a.list([2]))", "1\n[2]",
	},
	"process pool executor": {"from concurrent.futures import ProcessPoolExecutor as P\nwith P(2) as p: print(sum(p.map(abs, range(-5, 5))))", "25"},
	"asyncio server": {
		"import asyncio\nasync def echo(r, w): w.write(await r.readline()); await w.drain(); w.close()\ns = await asyncio.start_server(echo, '127.0.0.1', 0)\n" +
			"r, w = await asyncio.open_connection(*s.sockets[0].getsockname()[:2]); w.write(b'hi\\n'); print(await r.read())", "b'hi\\n'",
	},
	"unix socket": {
		"import asyncio\nasync def echo(r, w): w.write(await r.readline()); await w.drain(); w.close()\ns = await asyncio.start_unix_server(echo, '/tmp/s')\n" +
			"r, w = await asyncio.open_unix_connection('/tmp/s'); w.write(b'hi\\n'); print(await r.read())", "b'hi\\n'",
	},
	"sqlite with a journal and a second process": {
		"import sqlite3, os\nd = sqlite3.connect('w.db'); d.execute('pragma journal_mode=wal'); d.execute('create table t(x)'); d.commit()\n" +
			"if os.fork() == 0:\n  e = sqlite3.connect('w.db'); e.execute('insert into t values (7)'); e.commit(); os._exit(0)\nos.wait(); print(d.execute('select x from t').fetchall())",
		"[(7,)]",
	},
	"ctypes with a callback": {
		"import ctypes\nF = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))\na = (ctypes.c_int * 3)(3, 1, 2)\n" +
			"ctypes.CDLL(None).qsort(a, 3, 4, F(lambda x, y: x[0] - y[0])); print(list(a))", "[1, 2, 3]",
	},
	"files moved, locked, mapped": {
		"import fcntl, mmap, os, tempfile\nwith tempfile.TemporaryDirectory() as d:\n  f = open(d + '/a', 'w+b'); f.write(b'abc'); f.flush(); fcntl.flock(f, fcntl.LOCK_EX); fcntl.lockf(f, fcntl.LOCK_EX)\n" +
			"  m = mmap.mmap(f.fileno(), 0); m[0] = 65; m.flush(); os.mkdir(d + '/e'); os.rename(d + '/a', d + '/e/b'); os.link(d + '/e/b', d + '/c'); print(open(d + '/c').read())", "Abc",
	},
	"signals and timers": {"import signal, time\nsignal.signal(signal.SIGALRM, lambda *_: print('rang'))\nsignal.setitimer(signal.ITIMER_REAL, 0.05)\nsignal.pause()", "rang"},
	"zombies":            {"import os, time\nif os.fork() == 0:\n  os.fork(); os._exit(0)\nos.wait(); time.sleep(0.1); print('end')", "end"},
}

// TestNumpy computes on several threads, with the host's own Python.
func TestNumpy(t *testing.T) {
	if _, err := os.Stat("/usr/lib/python3/dist-packages/numpy"); err != nil {
		t.Skip("needs numpy: apt-get install python3-numpy")
	}
	onEveryHost(t, func(t *testing.T, h *host) {
		h.serve(t, env{"TOOLCELL_IMAGE": "host"}).python(t, "import numpy as n\na = n.arange(250_000.0).reshape(500, 500)\nprint(n.allclose((a @ a.T)[0, 0], (a[0] ** 2).sum()), n.linalg.svd(a[:50, :50])[1].shape, n.fft.fft(a[0]).shape)").
			want(t, "True (50,) (500,)")
	})
}

// TestPromises are the faults of the Python original, each made good.
//
//test:mainjob
func TestPromises(t *testing.T) {
	t.Parallel()
	versions, _ := pythons()
	prefix := registry(t, "", "", versions...)
	config := fakeConfig(t, nil)
	inEveryWay(t, onHosts, func(t *testing.T, h *host) {
		t.Parallel()
		for _, v := range h.versions(t) {
			t.Run(v, func(t *testing.T) {
				c := h.serve(t, env{"TOOLCELL_IMAGE": prefix + v + "-slim", "TOOLCELL_SERVERS_CONFIG": config})
				testPromises(t, c)
			})
		}
	})
}

func testPromises(t *testing.T, c *client) {
	for _, size := range []int{16 << 10, 1 << 20, 16 << 20} {
		r := c.python(t, fmt.Sprintf("t = await mcp_odd.big(size=%d)\nprint(len(t), t[-2])", size), "odd")
		r.want(t, fmt.Sprintf("%d e", size))
		r = c.python(t, fmt.Sprintf("print('x' * %d)", size))
		if r.isError || len(r.text) > 33<<10 {
			t.Errorf("printing %d bytes: %d bytes of text, status %q", size, len(r.text), r.status())
		}
		if cut := r.fields["truncated"] == true; cut != (size > 32<<10) {
			t.Errorf("printing %d bytes: truncated = %v", size, cut)
		}
	}
	r := c.python(t, "import asyncio\nprint(sum(map(int, await asyncio.gather(*[mcp_odd.meet() for _ in range(10)]))))", "odd")
	r.want(t, "10")
	r = c.python(t, "from mcp import runtime\nprint(len(await runtime.list_tools('schemas')), await mcp_schemas.small())", "schemas")
	r.want(t, "41 ok")
	r = c.python(t, "from mcp.runtime import MCPError\ntry: await mcp_odd.fail()\nexcept MCPError as e: print(e)\nprint('on')", "odd")
	r.want(t, "the disk is on fire\non")
	r = c.python(t, "from mcp import runtime\nhits = await runtime.search_tool_docs('create issue')\nprint(hits[0].server, hits[0].tool, (await runtime.query_tool_docs('jira', 'get_issue'))['tool'])")
	r.want(t, "github create_issue get_issue")
	r = c.python(t, "await mcp_github.create_issue(title='x')", "jira")
	if !r.isError || !strings.Contains(r.text, `servers argument`) || !strings.Contains(r.text, "github") {
		t.Errorf("a call that was not granted: %s", r.text)
	}
	r = c.python(t, "from mcp import runtime\ndef twice(x):\n    return 2 * x\nruntime.save_tool(twice)\nprint('saved')")
	r.want(t, "saved")
	c.python(t, "print(twice(21))").want(t, "42")
	r = c.python(t, "\nraise ValueError('here')")
	if !strings.Contains(r.text, `File "<run_python>", line 2`) || strings.Contains(r.text, "toolcell_runner") {
		t.Errorf("traceback: %s", r.text)
	}
	for name, ex := range readmeExamples {
		if r := c.python(t, ex.code, ex.servers...); r.isError || !strings.Contains(r.text, ex.want) {
			t.Errorf("%s: %s", name, r.text)
		}
	}
}

// readmeExamples run as a reader of the Python original's documents would
// write them.
var readmeExamples = map[string]struct {
	code    string
	servers []string
	want    string
}{
	"execute": {
		"result = await mcp_filesystem.read_file(path='/tmp/test.txt')\ndata = await mcp_search.search(query=\"TODO\")\n" +
			"issue = await mcp_github.create_issue(repo='owner/repo', title=data.title)\nprint(result, issue.title, issue['number'])",
		[]string{"filesystem", "search", "github"},
		"hello Found TODO 1",
	},
	"files": {
		"files = await mcp_filesystem.list_directory(path='/tmp')\nfor file in files:\n    content = await mcp_filesystem.read_file(path=file)\n" +
			"    if 'TODO' in content:\n        print(f\"TODO in {file}\")", []string{"filesystem"}, "TODO in a.txt",
	},
	"pipeline": {
		"transcript = await mcp_google_drive.get_document(documentId='abc123')\nsummary = transcript[:500] + \"...\"\n" +
			"r = await mcp_salesforce.update_record(objectType='SalesMeeting', recordId='00Q', data={'Notes': summary})\nprint(len(r.notes))",
		[]string{"google_drive", "salesforce"},
		"503",
	},
	"workflow": {
		"issues = await mcp_jira.search_issues(project='API', status='Open')\nfor issue in issues:\n    details = await mcp_jira.get_issue(id=issue.id)\n" +
			"    if 'bug' in details.description.lower():\n        made = await mcp_github.create_issue(repo='owner/repo', title=f\"Bug: {issue.title}\", body=details.description)\n" +
			"        print(made.title)", []string{"jira", "github"}, "Bug: Crash",
	},
	"inspect": {
		"from mcp import runtime\n\nprint(\"Discovered:\", runtime.discovered_servers())\nprint(\"Loaded metadata:\", runtime.list_loaded_server_metadata())\n" +
			"print(\"Selectable via RPC:\", await runtime.list_servers())\nloaded = runtime.list_loaded_server_metadata()\nif loaded:\n" +
			"  first = runtime.describe_server(loaded[0][\"name\"])\n  for tool in first[\"tools\"]:\n    print(tool[\"alias\"], \"→\", tool.get(\"description\", \"\"))",
		[]string{"github"},
		"create_issue → github: create issue",
	},
	"search": {
		"from mcp import runtime\n\nmatches = await runtime.search_tool_docs(\"jira issues\", limit=5)\nfor hit in matches:\n    print(hit[\"server\"], hit[\"tool\"], hit.get(\"description\", \"\"))",
		nil, "jira search_issues",
	},
	"other ways to a server": {
		"from mcp.servers.github import *\na = await create_issue(title='a')\nb = await mcp_servers['github'].create_issue(title='b')\nprint(a.title, b.title, LOADED_MCP_SERVERS)",
		[]string{"github"},
		"a b ('github',)",
	},
}

// refusedCalls tries what seccomp has to refuse, each by its number or by
// libc's own function, and prints what was let through.
const refusedCalls = `
import ctypes, errno, platform, socket
libc = ctypes.CDLL(None, use_errno=True)
def refused(name, result, *errors):
    if result != -1 or ctypes.get_errno() not in (errors or (errno.EPERM,)):
        print(name, result, errno.errorcode.get(ctypes.get_errno()))
for name, args in {
    "unshare": (0x10000000,), "setns": (0, 0), "mount": (b"none", b"/tmp", b"tmpfs", 0, 0), "umount2": (b"/tmp", 2),
    "ptrace": (0, 0, 0, 0), "process_vm_readv": (1, 0, 0, 0, 0, 0), "personality": (8,), "pivot_root": (b"/", b"/"),
    "sethostname": (b"x", 1), "chroot": (b"/tmp",), "swapon": (b"/x", 0), "reboot": (0,),
}.items():
    if hasattr(libc, name):
        refused(name, getattr(libc, name)(*args))
numbers = {"io_uring_setup": 425, "open_tree": 428, "move_mount": 429, "fsopen": 430, "pidfd_getfd": 438, "mount_setattr": 442}
if platform.machine() == "x86_64":
    numbers.update(bpf=321, userfaultfd=323, perf_event_open=298, add_key=248, keyctl=250, kcmp=312, init_module=175,
                   open_by_handle_at=304, kexec_load=246, modify_ldt=154, clone_newuser=56)
for name, number in numbers.items():
    refused(name, libc.syscall(number, 0x10000000 if name == "clone_newuser" else 0, 0, 0, 0, 0))
refused("clone3", libc.syscall(435, 0, 0), errno.ENOSYS)
refused("F_SETSIG", libc.fcntl(0, 10, 18))
for family in (16, 17, 38, 40, 3, 31):
    try: socket.socket(family, socket.SOCK_RAW if family == 17 else socket.SOCK_STREAM); print("socket family", family)
    except PermissionError: pass
print("end")`

// uncountedCalls tries what would take memory in no process, processors beyond
// the limit, or time while a session stands still, and prints what was let through.
const uncountedCalls = `
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
got = {
    "memfd_create": libc.memfd_create(b"x", 0), "shmget": libc.shmget(0, 4096, 0o1600), "msgget": libc.msgget(0, 0o1600),
    "semget": libc.semget(0, 1, 0o1600), "sched_setaffinity": libc.sched_setaffinity(0, 8, (ctypes.c_long * 1)(1)),
    "timer_create": libc.timer_create(1, None, ctypes.byref(ctypes.c_void_p())),
}
print(sorted(name for name, result in got.items() if result != -1))`

// TestUncountedCalls: they are refused where no cgroup counts, and only there.
func TestUncountedCalls(t *testing.T) {
	onEveryHost(t, func(t *testing.T, h *host) {
		t.Parallel()
		r := h.serve(t, env{"TOOLCELL_IMAGE": "host"}).python(t, uncountedCalls)
		isolation, _ := h.serve(t, env{"TOOLCELL_IMAGE": "host", "TOOLCELL_CPUS": "1"}).python(t, "1").fields["isolation"].(string)
		switch {
		case strings.Contains(isolation, "watched-limits"):
			r.want(t, "[]")
		case cgroup1(): // which could not freeze what a timer continues
			r.want(t, "['memfd_create', 'msgget', 'sched_setaffinity', 'semget', 'shmget']")
		default:
			r.want(t, "['memfd_create', 'msgget', 'sched_setaffinity', 'semget', 'shmget', 'timer_create']")
		}
		if h.name == "user" && isolation == "" && os.Geteuid() == 0 && cgroup1() || h.name == "root" && isolation != "" {
			t.Errorf("isolation = %q", isolation)
		}
	})
}

// cgroup1 reports whether this host limits by cgroup v1, where an ordinary user
// is given none.
func cgroup1() bool {
	_, err := os.Stat("/sys/fs/cgroup/cgroup.controllers")
	return err != nil
}

func TestSeccompRefuses(t *testing.T) {
	onHosts(t, func(t *testing.T, h *host) {
		t.Parallel()
		h.serve(t, env{"TOOLCELL_IMAGE": "host"}).python(t, refusedCalls).want(t, "end")
	})
}
