"""Starts a Python program ahead of its use: once, or as a template that sandboxes are forked from.

It runs inside a sandbox, in place of the program, with a socket to the host as fd 3. The first thing to come is a
configuration: four bytes of big-endian length and JSON, which template.go writes. Then

    once       the modules are imported, and the program waits
    template   the modules are imported, and each order that comes makes a fork, in which the program waits: b"f" for
               later, and b"n" for a run that is there already, then four bytes with the user id that the fork has here

Who waits sends b"w" to the host, over its own fd 3, and gets one byte with descriptors: stdout, stderr and,
if there is one, stdin. Then the program has fd 3 all for itself. It is a file that defines

    before_preload()  called before modules that the user has named are imported
    warm_up()       called in the template and in forks, to have done already what every run does; it leaves nothing
    prepare()       called once b"w" is sent; what it gives goes to the others
    main(prepared)  returns the exit code
    ended(prepared, code)  called last of all, if no other process is left; true if the host will end the sandbox now

    T  the template      trusted code only; it may make user namespaces, and mount in them
    └─ P  pid 1          cloned by T into a new user and pid namespace, builds the sandbox around itself, gives up all
       │                 privileges, forks W and becomes the small init (pid1.c, adopt)
       └─ W  pid 2       the program

Until it is the init, P is machine code in T's memory (forkstub.c), and T sleeps. It speaks with the host over its
lifeline: b"h" and its credentials, b"g" once it is in its cgroup, then the init sends the host's end of W's socket. If
it fails, T sends b"e" and why.
"""
from __future__ import annotations

import _signal  # type: ignore[import-not-found] # signal itself takes longer
import _socket
import _thread
import json
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any, NoReturn

CONTROL = 3
NULL = "/dev/null"
OWN_DIR = "/run/toolcell"
INIT = OWN_DIR + "/init"

# What the kernel calls things (linux/sched.h, mount.h, prctl.h, landlock.h).
NEWNS, NEWCGROUP, NEWUTS, NEWIPC = 0x20000, 0x2000000, 0x4000000, 0x8000000
NEWUSER, NEWPID, NEWNET = 0x10000000, 0x20000000, 0x40000000
RDONLY, NOSUID, NODEV, NOEXEC, REMOUNT, BIND, REC = 1, 2, 4, 8, 32, 4096, 16384
SET_DUMPABLE, SET_SECCOMP, CAPBSET_DROP, SET_NO_NEW_PRIVS, CAP_AMBIENT = 4, 22, 24, 38, 47
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
REMOVE, MAKE = 1 << 4 | 1 << 5, 1 << 7 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 12
MAKE_DEVICE = 1 << 6 | 1 << 11
LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT = 444, 445, 446
KEYCTL = {"x86_64": 250, "aarch64": 219}.get(os.uname().machine)
SETRESUID = {"x86_64": 117, "aarch64": 147}.get(os.uname().machine)
VM, VFORK = 0x100, 0x4000
NOFILE = 7  # RLIMIT_NOFILE
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3

# Descriptors of P that its calls name.
LIFELINE, RESOLVER, END, RULE, HELD = 32, 33, 34, 35, 36


class Refusal(Exception):
    """This Python, with these modules, cannot be a template, for the reason given."""


# Being started


def main() -> None:
    control = _socket.socket(fileno=CONTROL)
    config = json.loads(read_exactly(int.from_bytes(read_exactly(4), "big")))
    program = load(config["program"])
    failed: dict[str, str] = {}
    for name in config["base"]:
        import_module(name, {})
    template, name = None, ""
    try:
        if config["template"]:
            template = Template(config, control)
            # numexpr, which pandas imports where it is there, starts threads as it is imported, and does not end them
            # before a fork. It reads this then.
            threads = os.environ.get("NUMEXPR_NUM_THREADS")
            os.environ["NUMEXPR_NUM_THREADS"] = "1"
        if config["preload"]:
            program["before_preload"]()
        for name in config["preload"]:
            import_module(name, failed)
            if template:
                template.check(name)
        if template:
            del os.environ["NUMEXPR_NUM_THREADS"]
            if threads is not None:
                os.environ["NUMEXPR_NUM_THREADS"] = threads
    except Refusal as why:
        answer(control, {"refused": str(why), "module": name, "failed": failed})
        return
    for _ in range(30):  # by then the interpreter has made it as fast as it can
        program["warm_up"]()
    if template:
        seed_openssl()  # the first time takes a millisecond, which forks need not take then
    freeze_heap(template)
    answer(control, {"failed": failed})
    if template:
        control = template.run()  # returns in forks only
    if not template or template.order == b"f":
        program["warm_up"]()
    wait_and_run(control, program)


def read_exactly(size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = os.read(CONTROL, size - len(data))
        if not more:
            os._exit(0)  # the host does not want us any more
        data += more
    return data


def answer(control: _socket.socket, message: dict[str, Any]) -> None:
    body = json.dumps(message).encode()
    control.sendall(len(body).to_bytes(4, "big") + body)


def import_module(name: str, failed: dict[str, str]) -> None:
    """Imports a module; one that cannot be had is noted in failed."""
    try:
        __import__(name)
    except BaseException as error:
        failed[name] = "%s: %s" % (type(error).__name__, str(error)[:300])


def load(path: str) -> dict[str, Any]:
    """Returns the names that the program defines. Its __name__ is not __main__: its main() is called from here."""
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    names = {"__name__": "program", "__builtins__": __builtins__, "__file__": path}
    exec(code, names)
    return names


def freeze_heap(template: Template | None) -> None:
    """Reduces copying: the garbage collector ignores all objects that exist now."""
    import gc
    gc.collect()
    if template:
        trim = getattr(template.libc, "malloc_trim", None)  # glibc has it
        if trim:
            trim(0)
            # Large values come from the heap, and what was freed of it stays for the next one: pages of the kernel cost
            # more than decoding what lies in them. glibc does so by itself after a while, but gives back more
            # (mallopt(3)).
            template.libc.mallopt(M_MMAP_THRESHOLD, 32 << 20)
            template.libc.mallopt(M_TRIM_THRESHOLD, 64 << 20)
    gc.freeze()


def wait_and_run(control: _socket.socket, program: dict[str, Any]) -> NoReturn:
    """Waits for the streams, runs the program and ends."""
    pid = os.getpid()
    control.sendall(b"w")
    prepared = program["prepare"]()
    data, ancillary, _, _ = control.recvmsg(1, _socket.CMSG_LEN(12))
    if not data or not ancillary:
        os._exit(0)  # no longer needed
    for stream, fd in zip((1, 2, 0), descriptors(ancillary)):
        os.dup2(fd, stream)
        os.close(fd)
    control.detach()
    code = finalize_python(program["main"](prepared))
    # Also a process that the program forked comes back here.
    if os.getpid() == pid and alone():
        try:
            if program["ended"](prepared, code):
                await_the_kill()
        except Exception:
            pass  # the program closed its socket; the host sees us end
    os._exit(code)


def await_the_kill() -> NoReturn:
    """Leaves it to the host to end the sandbox, after its answer: to take memory apart needs the processor that the
    answer needs.
    """
    _signal.pthread_sigmask(_signal.SIG_BLOCK, _signal.valid_signals())
    while True:
        _signal.pause()


def alone() -> bool:
    """Reports whether there is no other process but pid 1 (kill(2))."""
    try:
        os.kill(-1, 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass
    return False


def descriptors(ancillary: Iterable[tuple[int, int, bytes]]) -> list[int]:
    data = b"".join(data for _, _, data in ancillary)
    return [int.from_bytes(data[at:at + 4], sys.byteorder) for at in range(0, len(data), 4)]


# Ending


def finalize_python(code: int) -> int:
    """Does what Python does at its end, without taking apart what was there before the program: that takes longer
    than most programs run, and copies every page of the template. Returns the exit code.
    """
    for end in (join_threads, run_atexit, flush, forget):
        try:
            code = end(code)
        except BaseException as error:
            sys.excepthook(type(error), error, error.__traceback__)
    # What C libraries have printed. To ask ctypes for a library takes long.
    if Template.flush:
        Template.flush(None)
    elif "ctypes" in sys.modules:
        sys.modules["ctypes"].PyDLL(None).fflush(None)
    return code & 0xFF


def join_threads(code: int) -> int:
    threading = sys.modules.get("threading")
    # Without any other thread there is nothing to wait for, unless a callback is registered.
    if threading and (_thread._count() or threading.__dict__.get("_threading_atexits", True)):
        threading._shutdown()
    return code


def run_atexit(code: int) -> int:
    import atexit
    atexit._run_exitfuncs()
    return code


def flush(code: int) -> int:
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except Exception:
            code = code or 120  # as Python has it
    return code


def forget(code: int) -> int:
    """Drops the program's objects, so that their finalizers run."""
    names = getattr(sys.modules.get("__main__"), "__dict__", {})
    if names is globals():
        return code  # the program has not made a module of its own
    for name in [name for name in names if not name.startswith("__")]:
        names[name] = None
    return flush(code)


# The template


class Template:
    """The process that is forked, and what its forks do until they are sandboxes."""
    flush = None  # the C library's fflush, once there is a template

    def __init__(self, config: dict[str, Any], control: _socket.socket) -> None:
        if KEYCTL is None:
            raise Refusal("the numbers of the calls are not known for this processor")
        try:
            import ctypes
        except ImportError:
            raise Refusal("this Python has no ctypes") from None
        self.c, self.control, self.ctypes = config, control, ctypes
        self.libc, self.errno = ctypes.CDLL(None, use_errno=True), ctypes.get_errno
        self.libc.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
        Template.flush = self.libc.fflush
        self.masks = list(self.sorted_masks())
        self.stub = ForkStub(ctypes, self.libc, bytes.fromhex(config["stub"]), config["entry"])
        self.prepare()
        self.files = self.open_files()
        self.check("the standard library")

    def sorted_masks(self) -> Iterator[tuple[bytes, bytes, bytes | None, int, bytes | None]]:
        for path in self.c["masked"]:
            if os.path.isdir(path):
                yield b"tmpfs", path.encode(), b"tmpfs", RDONLY | NOSUID | NODEV | NOEXEC, b"size=4k,nr_inodes=2"
            elif os.path.exists(path):
                yield NULL.encode(), path.encode(), None, BIND, None
        for path in self.c["covered"]:
            yield (OWN_DIR + path).encode(), path.encode(), None, BIND, None

    # What must not be in a template, since every fork would have it

    def check(self, name: str) -> None:
        """Raises Refusal if what was just imported left something that forks would share, or break over."""
        if self.threads() > 1:
            # Libraries with threads of their own, such as OpenBLAS, end them before a fork and start them again in
            # whichever process needs them. One fork that does nothing makes this process a single one again.
            sys.stderr.flush()
            import warnings
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                child = os.fork()
            if child == 0:
                os._exit(0)
            os.waitpid(child, 0)
        if self.threads() > 1:
            raise Refusal(name + " keeps threads running, and a fork has none of them")
        if self.others():
            raise Refusal(name + " keeps processes running, which would see the forks")
        with open("/proc/self/maps") as file:
            maps = file.readlines()
        for line in maps:
            fields = line.split()
            if fields[1][3] == "s" and "w" in fields[1]:
                raise Refusal(name + " keeps memory that forks would share: " + " ".join(fields[5:]))
        left = self.open_files() - self.files
        if left:
            raise Refusal("%s keeps descriptors open: %s" % (name, ", ".join(sorted(left))))
        for number in range(1, _signal.NSIG):
            if number not in (_signal.SIGINT, _signal.SIGKILL, _signal.SIGSTOP) and callable(_signal.getsignal(number)):
                raise Refusal("%s handles signal %d" % (name, number))

    def threads(self) -> int:
        return len(os.listdir("/proc/self/task"))

    def others(self) -> list[str]:
        """Returns the processes in the sandbox beside pid 1 and this one, but for those that have ended."""
        found = []
        for pid in os.listdir("/proc"):
            if not pid.isdigit() or pid in ("1", str(os.getpid())):
                continue
            try:
                with open("/proc/%s/stat" % pid) as file:
                    state = file.read().rpartition(")")[2].split()[0]
            except OSError:
                continue  # gone
            if state not in ("Z", "X"):
                found.append(pid)
        return found

    def open_files(self) -> set[str]:
        found = set()
        for fd in os.listdir("/proc/self/fd"):
            try:
                found.add(fd + " " + os.readlink("/proc/self/fd/" + fd))
            except OSError:
                pass  # that of the list itself
        return found

    def run(self) -> _socket.socket:
        """Makes a fork for each order from the host. Returns in forks, with their own socket to the host."""
        _signal.signal(_signal.SIGCHLD, _signal.SIG_IGN)  # the kernel collects them
        self.hide()
        while True:
            order, ancillary, _, _ = self.control.recvmsg(5, _socket.CMSG_LEN(4))
            if not order:
                os._exit(0)
            self.order, uid = order[:1], int.from_bytes(order[1:], "big")
            lifeline, = descriptors(ancillary)
            os.dup2(lifeline, LIFELINE)
            os.close(lifeline)
            pid = self.fork_as(uid)
            if pid == 0:
                return self.become_worker()
            self.hide()  # P has ended that
            why = self.stub.failure(pid)
            if why:
                self.tell(why)
            os.close(LIFELINE)

    def fork_as(self, uid: int) -> int:
        """Makes a fork that is this user on the host. Who makes a user namespace owns it, and with uid as effective id
        the fork may map its own id to that by itself. Returns as the stub does.
        """
        if self.libc.syscall(SETRESUID, -1, uid, -1) < 0:
            return -self.errno()
        self.uid_map.value = self.uid_line(uid)
        pid = self.stub(NEWUSER | NEWPID | VM | VFORK | _signal.SIGCHLD)
        if pid != 0:
            self.libc.syscall(SETRESUID, -1, self.c["uid"], -1)  # the real one, which anyone may go back to
        return pid

    def uid_line(self, uid: int) -> bytes:
        return b"%d %10d 1" % (self.c["uid"], uid)  # as long for any id

    def hide(self) -> None:
        """Makes this process undumpable, so that processes with our user id cannot inspect it; forks undo that."""
        if self.libc.prctl(SET_DUMPABLE, 0, 0, 0, 0) < 0:
            raise OSError(self.errno(), "hiding the template: " + os.strerror(self.errno()))

    def tell(self, text: str) -> None:
        try:
            os.write(LIFELINE, b"e" + text.encode("utf-8", "replace")[:500])
        except OSError:
            pass

    def become_worker(self) -> _socket.socket:
        """The rest of what W does until it waits. It keeps nothing of the template's but memory."""
        why = self.stub.failure(0)
        if why:
            self.tell(why)
            os._exit(125)
        _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
        self.control.detach()
        os.closerange(CONTROL + 1, os.sysconf("SC_OPEN_MAX"))
        reseed()
        return _socket.socket(fileno=CONTROL)

    # What a fork does until it is a sandbox. It is written down here, and carried out in forkstub.c.

    def prepare(self) -> None:
        before, after, worker, libc = self.stub.before, self.stub.after, self.stub.worker, self.libc
        before.add("opening /proc/self", libc.prctl, SET_DUMPABLE, 1, 0, 0, 0)
        before.add("making a session", libc.setsid)
        self.map_ids(before)
        before.add("greeting the host", libc.write, LIFELINE, b"h", 1, least=1)
        before.add("waiting for the host", libc.read, LIFELINE, b"?", 1, least=1)
        # Only now: the cgroup that this is called in is the root of what will be seen.
        before.add("making namespaces", libc.unshare, NEWNS | NEWNET | NEWIPC | NEWUTS | NEWCGROUP)
        # A keyring of its own (session-keyring(7)). If the user has too many, it keeps the template's, as
        # joinKeyring (container/init.go) says.
        before.add("making a keyring", libc.syscall, KEYCTL, 1, 0, least=-1)
        self.mount_all(before)
        self.set_up_network(before)
        for number, limit in self.c["rlimits"]:
            # The limit on descriptors is the worker's alone, as in pid1.c.
            calls = worker if number == NOFILE else before
            calls.add("setting a resource limit", libc.setrlimit, number, words(limit, limit))
        before.add("entering /workspace", libc.chdir, b"/workspace")  # the new one: ours so far is the template's
        # Made here, since a socket belongs for ever to the network namespace it was made in.
        pair = before.place(bytes(8))
        stream = _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC
        before.add("making a socket", libc.socketpair, _socket.AF_UNIX, stream, 0, pair)
        before.add("placing a socket", libc.dup2, Found(pair), END)
        before.add("hiding the template", libc.prctl, SET_DUMPABLE, 0, 0, 0, 0)
        self.drop_privileges(before)
        before.add("waiting for processes", libc.signal, _signal.SIGCHLD, 0)
        before.add("making the program's process", libc.fork)

        environment = words(worker.place(b"_TOOLCELL_ADOPT=%d:%d:2" % (LIFELINE, END)), 0)
        after.add("becoming pid 1", libc.execve, INIT.encode(), words(after.place(b"toolcell"), 0), environment)

        worker.add("being nicer", libc.nice, self.c["nice"], least=-20)
        worker.add("opening /proc/self", libc.prctl, SET_DUMPABLE, 1, 0, 0, 0)
        # Not the template's own, whose flags all forks would share.
        null = worker.add("opening " + NULL, libc.open, NULL.encode(), os.O_RDWR | os.O_CLOEXEC)
        worker.add("placing " + NULL, libc.dup2, null, 0)
        worker.add("placing the control socket", libc.dup2, Found(pair + 4), CONTROL)
        self.enter_landlock(worker)

    def map_ids(self, calls: Calls) -> None:
        uid, line = self.c["uid"], self.uid_line(0)
        self.uid_map = self.ctypes.create_string_buffer(line)  # fork_as changes it
        put(calls, self.libc, "/proc/self/setgroups", b"deny")  # or the kernel refuses the next (user_namespaces(7))
        put(calls, self.libc, "/proc/self/uid_map", line, self.ctypes.addressof(self.uid_map))
        put(calls, self.libc, "/proc/self/gid_map", b"%d %d 1" % (self.c["gid"], os.getgid()))
        # The real id, too: what the kernel counts for a user it counts for that.
        calls.add("becoming the fork's user", self.libc.syscall, SETRESUID, uid, uid, uid)

    def mount_all(self, calls: Calls) -> None:
        again = [target for target, kind, _, _ in self.c["mounts"] if kind == "bind"]
        for n, target in enumerate(again):
            fd = calls.add("opening " + target, self.libc.open, target.encode(), os.O_PATH | os.O_CLOEXEC)
            calls.add("holding " + target, self.libc.dup2, fd, HELD + n)
            calls.add("closing " + target, self.libc.close, fd)
        self.make_resolver(calls)
        for target, kind, flags, options in self.c["mounts"]:
            if kind == "bind":
                self.show_again(calls, HELD + again.index(target), target)
            else:
                self.mount(calls, kind.encode(), target.encode(), kind.encode(), flags, options.encode())
        for path, value in (self.c["sysctl"] or {}).items():
            put(calls, self.libc, "/proc/sys/" + path.replace(".", "/"), value.encode())
        for mask in self.masks:
            self.mount(calls, *mask)
        for path in self.c["readonly"]:
            if os.path.exists(path):
                path = path.encode()
                self.mount(calls, path, path, None, BIND | REC, None)
                self.mount(calls, None, path, None, BIND | REMOUNT | RDONLY | NOSUID | NODEV | NOEXEC, None)

    def make_resolver(self, calls: Calls) -> None:
        """Mounts a resolv.conf of the fork's own, as makeResolver in container/init.go does, before /tmp covers it."""
        file = b"/tmp/resolv.conf"
        self.mount(calls, b"tmpfs", b"/tmp", b"tmpfs", NOSUID | NODEV | NOEXEC, b"size=4k,nr_inodes=2,mode=755")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        fd = calls.add("making a resolv.conf", self.libc.open, file, flags, 0o644)
        calls.add("placing a resolv.conf", self.libc.dup2, fd, RESOLVER)
        calls.add("closing a resolv.conf", self.libc.close, fd)
        if self.c["resolver"]:
            at = b"/etc/resolv.conf"
            self.mount(calls, file, at, None, BIND, None)
            self.mount(calls, None, at, None, BIND | REMOUNT | RDONLY | NOSUID | NODEV | NOEXEC, None)

    def mount(self, calls: Calls, source: bytes | None, target: bytes, kind: bytes | None, flags: int,
              options: bytes | None) -> None:
        calls.add("mounting on " + target.decode(), self.libc.mount, source, target, kind, flags, options)

    def show_again(self, calls: Calls, fd: int, target: str) -> None:
        """Mounts what the template has at target, and a new file system has covered, once more, with all its flags."""
        folders = target.split("/")[1:]
        file = None if os.path.isdir(target) else folders.pop()
        for n in range(len(folders)):
            path = "/" + "/".join(folders[:n + 1])
            calls.add("making " + path, self.libc.mkdir, path.encode(), 0o777, least=-1)  # it may be there
        if file is not None:
            flags = os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            new = calls.add("making " + target, self.libc.open, target.encode(), flags, 0o644)
            calls.add("closing " + target, self.libc.close, new)
        # With what covers file systems that are mounted below it.
        self.mount(calls, b"/proc/self/fd/%d" % fd, target.encode(), None, BIND | REC, None)
        calls.add("letting go of " + target, self.libc.close, fd)

    def set_up_network(self, calls: Calls) -> None:
        """Switches the loopback on: SIOCSIFFLAGS, IFF_UP (netdevice(7))."""
        datagram = _socket.SOCK_DGRAM | _socket.SOCK_CLOEXEC
        s = calls.add("making a socket", self.libc.socket, _socket.AF_INET, datagram, 0)
        up = b"lo".ljust(16, b"\0") + (1).to_bytes(2, sys.byteorder) + bytes(22)
        calls.add("switching the loopback on", self.libc.ioctl, s, 0x8914, up)
        calls.add("closing a socket", self.libc.close, s)

    def drop_privileges(self, calls: Calls) -> None:
        """Empties every capability set, the bounding set first, since that takes one, and loads the filter."""
        prctl = self.libc.prctl
        with open("/proc/sys/kernel/cap_last_cap") as file:
            last = int(file.read())
        for capability in range(last + 1):
            calls.add("dropping capability %d" % capability, prctl, CAPBSET_DROP, capability, 0, 0, 0)
        calls.add("clearing the ambient capabilities", prctl, CAP_AMBIENT, 4, 0, 0, 0)
        # _LINUX_CAPABILITY_VERSION_3, this process; no capability in any set.
        header = (0x20080522).to_bytes(4, sys.byteorder) + bytes(4)
        calls.add("dropping capabilities", self.libc.capset, header, bytes(24))
        calls.add("setting no_new_privs", prctl, SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        # The filter as prctl wants it: its length in instructions of eight bytes, and where it is.
        program = bytes.fromhex(self.c["filter"])
        program = words(len(program) // 8, calls.place(program))
        calls.add("loading the seccomp filter", prctl, SET_SECCOMP, 2, program, 0, 0)

    def enter_landlock(self, calls: Calls) -> None:
        """As landlock() in pid1.c, which says why."""
        syscall = self.libc.syscall
        version = syscall(LANDLOCK_CREATE, None, 0, 1)
        if version < 2:
            return
        own = WRITE_FILE | REMOVE | MAKE | REFER | (TRUNCATE if version >= 3 else 0)
        handled = own | MAKE_DEVICE | EXECUTE | READ_FILE | READ_DIR | (IOCTL_DEV if version >= 5 else 0)
        sizes = 24 if version >= 6 else 16 if version >= 4 else 8
        ruleset = words(handled, 0, 3 if version >= 6 else 0)
        rules = calls.add("making a Landlock ruleset", syscall, LANDLOCK_CREATE, ruleset, sizes, 0)
        own |= READ_FILE
        of_files = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE
        places = [("/", READ_DIR), ("/proc", READ_FILE), ("/tmp", own), ("/workspace", own), ("/dev/shm", own),
                  ("/dev", own & of_files)]
        places += [(path, READ_FILE | EXECUTE) for path in self.c["readable"]]
        places += [(path, own if os.path.isdir(path) else own & of_files) for path in self.c["writable"]]
        for path, allowed in places:
            if not os.path.exists(path):
                continue  # what is not there needs no rule
            fd = calls.add("opening " + path, self.libc.open, path.encode(), os.O_PATH | os.O_CLOEXEC)
            calls.add("placing " + path, self.libc.dup2, fd, RULE)
            rule = words(allowed) + RULE.to_bytes(4, sys.byteorder)
            calls.add("adding a Landlock rule", syscall, LANDLOCK_ADD, rules, 1, rule, 0)
            calls.add("closing " + path, self.libc.close, fd)
        calls.add("entering the Landlock domain", syscall, LANDLOCK_RESTRICT, rules, 5 if version >= 7 else 0)


class ForkStub:
    """What forkstub.c has: its machine code, and the lists of calls that it carries out, in a struct fork_stub. It is
    called with the flags of the new process, and returns the pid, or 0 in the worker.
    """

    def __init__(self, ctypes: Any, libc: Any, code: bytes, entry: int) -> None:
        long, pointer = ctypes.c_long, ctypes.c_void_p
        libc.mmap.restype = pointer
        libc.mmap.argtypes = [pointer, long, ctypes.c_int, ctypes.c_int, ctypes.c_int, long]
        libc.mprotect.argtypes = [pointer, long, ctypes.c_int]
        at = libc.mmap(None, len(code), 1 | 2, 2 | 32, -1, 0)  # read, write; private, anonymous
        if at in (None, pointer(-1).value):
            raise Refusal("there is no memory for code")
        ctypes.memmove(at, code, len(code))
        if libc.mprotect(at, len(code), 1 | 4) < 0:  # read, execute
            raise Refusal("memory cannot be made executable here: " + os.strerror(ctypes.get_errno()))
        self.enter = ctypes.PYFUNCTYPE(long, ctypes.c_ulong, pointer)(at + entry)
        self.before, self.after, self.worker = self.lists = [Calls(ctypes) for _ in range(3)]
        self.table: Any = None
        self.ctypes, self.libc = ctypes, libc

    def __call__(self, flags: int) -> int:
        if self.table is None:
            table = words(address_of(self.ctypes, self.libc["__errno_location"]))
            for calls in self.lists:
                table += words(calls.address, len(calls.what), 0, 0)
            self.table = self.ctypes.create_string_buffer(table, len(table))
        python = self.ctypes.pythonapi
        python.PyOS_BeforeFork()
        pid: int = self.enter(flags, self.ctypes.addressof(self.table))
        if pid == 0:
            python.PyOS_AfterFork_Child()
        else:
            python.PyOS_AfterFork_Parent()
        return pid

    def failure(self, pid: int) -> str | None:
        """Returns the error, or None."""
        if pid < 0:
            return "making a process: " + os.strerror(-pid)
        for n, calls in enumerate(self.lists):
            at = slice(32 * n + 24, 32 * n + 40)
            failed, error = (int.from_bytes(half, sys.byteorder) for half in (self.table[at][:8], self.table[at][8:]))
            if failed:
                self.table[at] = bytes(16)
                return "%s: %s" % (calls.what[failed - 1], os.strerror(error))
        return None


class Found(int):
    """Where the int will be that is an argument."""


class Calls:
    """A struct calls."""
    ROOM, SIZE = 512, 80

    def __init__(self, ctypes: Any) -> None:
        self.ctypes = ctypes
        self.what: list[str] = []
        self.kept: list[Any] = []
        self.table = ctypes.create_string_buffer(self.ROOM * self.SIZE)
        self.address = ctypes.addressof(self.table)

    def place(self, data: bytes) -> int:
        """Returns where data is, for ever."""
        self.kept.append(self.ctypes.create_string_buffer(data))
        return int(self.ctypes.addressof(self.kept[-1]))

    def add(self, what: str, function: Any, *arguments: Any, least: int = 0) -> Found:
        """Adds a call, which fails if its result is less than least. An argument is a number, bytes to point to, None,
        or where the number will be. Returns where the result will be.
        """
        at, indirect, row = len(self.what) * self.SIZE, 0, [address_of(self.ctypes, function)]
        for n, argument in enumerate(arguments):
            indirect |= isinstance(argument, Found) << n
            row.append(self.place(argument) if isinstance(argument, bytes) else argument or 0)
        row += [0] * (7 - len(row)) + [indirect, least, 0]
        self.table[at:at + self.SIZE] = words(*row)
        self.what.append(what)
        return Found(self.address + at + self.SIZE - 8)


def address_of(ctypes: Any, function: Any) -> int:
    return int(ctypes.cast(function, ctypes.c_void_p).value)


def words(*values: int) -> bytes:
    """Returns numbers as a C long has them."""
    return b"".join((value & (1 << 64) - 1).to_bytes(8, sys.byteorder) for value in values)


def put(calls: Calls, libc: Any, path: str, text: bytes, place: int | None = None) -> None:
    """Writes text to a file, or as much from place."""
    fd = calls.add("opening " + path, libc.open, path.encode(), os.O_WRONLY | os.O_CLOEXEC)
    calls.add("writing to " + path, libc.write, fd, place or text, len(text))
    calls.add("closing " + path, libc.close, fd)


def reseed() -> None:
    """Gives this fork random numbers of its own. The C library's notice a fork themselves. What random.Random objects
    other modules keep were made from the template's, and are made anew.
    """
    modules: dict[str, Any] = sys.modules
    if "random" in modules:
        modules["random"].seed()
    if "numpy.random" in modules:
        modules["numpy.random"].seed()
    if "tempfile" in modules:
        modules["tempfile"]._name_sequence = None
    seed_openssl()
    if "uuid" in modules:
        modules["uuid"]._node = modules["uuid"]._last_timestamp = None


def seed_openssl() -> None:
    """Has OpenSSL notice that this process is another, which it tells by the pid. Otherwise a process of this sandbox
    that got the template's pid would go on with the template's numbers.
    """
    module: Any = sys.modules.get("_ssl")
    if module:
        module.RAND_bytes(1)


main()
