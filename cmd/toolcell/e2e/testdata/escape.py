"""Attempts to get out of the sandbox, or at anything beyond it. All of them must fail.

Each attempt is a function that returns what it got, as text, or None if it got nothing; an exception means nothing too.
It runs in a process of its own, so it may crash, hang or spoil itself. One line of JSON is printed for each:

    {"name": "reads the host's file by its path", "held": true, "what": "FileNotFoundError: ..."}

Before this text the test puts TRAPS, a dict of what it has laid out on the host and in a neighbouring sandbox. Every
trap file, variable and segment holds a text of the form trap-<32 hex digits>, which stands nowhere in TRAPS: whoever
can say it has got out.

An attempt with safe_outside=True does no harm on the bare host, and has to succeed there: that is how we know that it
can. Such attempts, and no others, run if TRAPS["outside"] is set.

With TRAPS["home"] this is an MCP server, which makes the attempts when its one tool is called. What servers may do and
code may not (docs/security.md) is no attempt then: they write to their HOME and run what is there, list network
interfaces and watch files. They have no control socket.
"""
import os


def inherited():
    """Gives the descriptors that are open."""
    for fd in range(4096):
        try:
            os.fstat(fd)
            yield fd
        except OSError:
            pass


INHERITED = list(inherited())  # before ctypes is there, whose libffi may open a file of its own

import array
import contextlib
import ctypes
import errno
import fcntl
import functools
import glob
import io
import json
import mmap
import platform
import re
import resource
import select
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import time

PATIENCE = 20  # seconds an attempt may take
CONTROL = 3  # the socket to the host
SECRET = re.compile(rb"trap-[0-9a-f]{32}")
OUTSIDE = TRAPS.get("outside", False)  # noqa: F821
HOME = TRAPS.get("home", "")  # noqa: F821
UP = "../" * 40
ATTEMPTS = []


def attempt(name, safe_outside=False, of_code=True, of_server=True):
    """Names an attempt and puts it on the list, if it is one of code's or of a server's."""
    def add(function):
        if of_server if HOME else of_code:
            ATTEMPTS.append((name, safe_outside, function))
        return function
    return add


only_code, only_server = functools.partial(attempt, of_server=False), functools.partial(attempt, of_code=False)


# What the attempts are made of


libc = ctypes.CDLL(None, use_errno=True)

DENIED = (errno.EPERM, errno.EACCES, errno.ENOSYS)

# Numbers of the calls that libc has no function for, or none for what we want: x86-64, arm64 (None: it has none).
NUMBERS = {
    "acct": (163, 89), "add_key": (248, 217), "adjtimex": (159, 171), "afs_syscall": (183, None), "bpf": (321, 280),
    "cachestat": (451, 451), "capset": (126, 91), "chroot": (161, 51), "clock_adjtime": (305, 266), "clock_settime": (227, 112),
    "clone": (56, 220), "clone3": (435, 435), "create_module": (174, None), "delete_module": (176, 106),
    "fanotify_init": (300, 262), "fanotify_mark": (301, 263), "finit_module": (313, 273), "fsconfig": (431, 431),
    "fsmount": (432, 432), "fsopen": (430, 430), "fspick": (433, 433), "get_kernel_syms": (177, None),
    "getpid": (39, 172), "init_module": (175, 105), "io_cancel": (210, 3), "io_destroy": (207, 1),
    "io_getevents": (208, 4), "io_pgetevents": (333, 292), "io_setup": (206, 0), "io_submit": (209, 2),
    "io_uring_setup": (425, 425), "ioperm": (173, None),
    "iopl": (172, None), "ioprio_set": (251, 30), "kcmp": (312, 272), "kexec_file_load": (320, 294),
    "kexec_load": (246, 104), "keyctl": (250, 219), "listmount": (458, 458), "lookup_dcookie": (212, 18),
    "migrate_pages": (256, 238), "mincore": (27, 232), "modify_ldt": (154, None), "mount": (165, 40), "mount_setattr": (442, 442),
    "move_mount": (429, 429), "move_pages": (279, 239), "name_to_handle_at": (303, 264), "nfsservctl": (180, 42),
    "open_by_handle_at": (304, 265), "open_tree": (428, 428), "open_tree_attr": (467, 467),
    "perf_event_open": (298, 241), "personality": (135, 92), "pidfd_getfd": (438, 438), "pidfd_open": (434, 434),
    "openat2": (437, 437), "pidfd_send_signal": (424, 424), "pivot_root": (155, 41), "preadv2": (327, 286),
    "process_madvise": (440, 440), "sync_file_range": (277, 84),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "ptrace": (101, 117), "query_module": (178, None),
    "quotactl": (179, 60), "quotactl_fd": (443, 443), "reboot": (169, 142), "remap_file_pages": (216, 234),
    "request_key": (249, 218), "rt_sigqueueinfo": (129, 138), "seccomp": (317, 277), "setdomainname": (171, 162), "sethostname": (170, 161),
    "setns": (308, 268), "settimeofday": (164, 170), "statmount": (457, 457), "swapoff": (168, 225),
    "swapon": (167, 224), "syncfs": (306, 267), "sysfs": (139, None), "syslog": (103, 116), "tgkill": (234, 131), "umount2": (166, 39),
    "unshare": (272, 97), "uselib": (134, None), "userfaultfd": (323, 282), "vhangup": (153, 58), "vmsplice": (278, 75),
}
ARCH = {"x86_64": 0, "aarch64": 1}[platform.machine()]

NAMESPACES = {
    "mnt": 0x00020000, "cgroup": 0x02000000, "uts": 0x04000000, "ipc": 0x08000000, "user": 0x10000000,
    "pid": 0x20000000, "net": 0x40000000, "time": 0x00000080,
}
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_MOVE = 1, 32, 4096, 8192
AT_FDCWD = -100


def syscall(name, *args):
    """Makes a system call by its number. Raises OSError if the kernel refuses it, or this machine has none."""
    number = NUMBERS[name][ARCH]
    if number is None:
        raise OSError(errno.ENOSYS, name)
    args = [a if isinstance(a, (bytes, ctypes.Array)) else ctypes.c_long(a) for a in args]
    return checked(libc.syscall(ctypes.c_long(number), *args))


def checked(result):
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def read(path, dir_fd=None, size=1 << 20):
    """Returns the start of a file, never waiting for it."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=dir_fd)
    try:
        return os.read(fd, size)
    finally:
        os.close(fd)


def secret(data):
    """Returns the secret of a trap in data, if there is one."""
    found = SECRET.search(data)
    return found and found.group().decode()


def first(tries):
    """Returns the first thing that one of these calls gets. Raises the last error if none gets anything."""
    error = None
    for one in tries:
        try:
            got = one()
            if got:
                return str(got)
        except OSError as e:
            error = e
    if error:
        raise error


def readable(paths):
    """Returns the secret in the first of these files that has one."""
    return first(lambda p=p: secret(read(p)) for p in paths)


def writable(paths, flags=os.O_WRONLY):
    """Returns which of these files open for writing, /dev/null and its like aside: they cover others."""
    found, error = [], None
    for path in paths:
        try:
            fd = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as e:
            error = e
            # A busy program is said to be busy before the mount is said to be read-only.
            found += [path] if e.errno == errno.ETXTBSY and not os.statvfs(path).f_flag & os.ST_RDONLY else []
            continue
        found += [] if stat.S_ISCHR(os.fstat(fd).st_mode) else [path]
        os.close(fd)
    if error and not found:
        raise error
    return found and "for writing: " + " ".join(found)


def walk(*todo):
    """Gives (path, lstat) of everything there is below some folders, the last one first, but for what is below /proc."""
    todo = list(todo)
    while todo:
        try:
            entries = [(entry.path, entry.stat(follow_symlinks=False)) for entry in os.scandir(todo.pop())]
        except OSError:
            continue
        yield from entries
        todo += [path for path, about in entries if stat.S_ISDIR(about.st_mode) and path != "/proc"]


def looked_for(*folders):
    """Gives (path, mode, device) of what attempts look for below folders: other folders, devices, setuid and setgid."""
    for path, about in walk(*folders):
        mode = about.st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)) or mode & (stat.S_ISUID | stat.S_ISGID):
            yield path, mode, about.st_rdev


# Found once for all attempts. Each attempt is a fork, which takes longer the more memory there is, so only what
# they look for is kept. The bare host may have millions of files: there, programs come first.
EVERYTHING = looked_for("/", "/usr/bin") if OUTSIDE else list(looked_for("/"))


def below(folder):
    return (os.path.join(at, name) for at, _, names in os.walk(folder) for name in names)


def processes():
    """Returns the pids in sight, but for ours and those of who started us."""
    pids = [int(p) for p in os.listdir("/proc") if p.isdigit()] or [
        pid for pid in range(1, 500) if can(lambda: os.kill(pid, 0))]
    return [pid for pid in pids if pid not in (os.getpid(), os.getppid())]


def can(function):
    """Reports whether a call works."""
    try:
        function()
        return True
    except OSError:
        return False


def program_named(name):
    return shutil.which(name, path="/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")


def exits(function):
    """Returns what a forked process says of its own exit code: 0 if function went well there."""
    pid = os.fork()
    if pid == 0:
        try:
            function()
            os._exit(0)
        except BaseException:
            os._exit(1)
    return os.waitpid(pid, 0)[1]


# Files of the host


@attempt("reads the host's file by its path", safe_outside=True)
def _():
    return secret(read(TRAPS["file"]))


@attempt("reads the user's private file by its path", safe_outside=True)
def _():
    return secret(read(TRAPS["private"]))


@attempt("reads the host's file through /proc/1/root")
def _():
    return secret(read("/proc/1/root" + TRAPS["file"]))


@attempt("reads the host's file from /proc/1/cwd upwards")
def _():
    return secret(read("/proc/1/cwd/" + UP + TRAPS["file"]))


@attempt("reads the host's file from /proc/self/root upwards", safe_outside=True)
def _():
    return secret(read("/proc/self/root/" + UP + TRAPS["file"]))


@attempt("reads the host's file through the root or the cwd of any process", safe_outside=True)
def _():
    links = glob.glob("/proc/[0-9]*/root") + glob.glob("/proc/[0-9]*/task/*/root") + glob.glob("/proc/[0-9]*/cwd")
    return readable(f"{link}/{UP}{TRAPS['file']}" for link in links)


@attempt("reads the host's file with openat and more .. than there are folders", safe_outside=True)
def _():
    return secret(read(UP + TRAPS["file"], dir_fd=os.open("/usr/lib", os.O_RDONLY)))


@attempt("reads the host's file with openat from an inherited descriptor (CVE-2024-21626)", safe_outside=True)
def _():
    return first(lambda fd=fd: secret(read(UP + TRAPS["file"], dir_fd=fd)) for fd in range(4096))


@attempt("reads the host's file after fchdir to an inherited descriptor (CVE-2024-21626)", safe_outside=True)
def _():
    def step(fd):
        os.fchdir(fd)
        return secret(read(UP + TRAPS["file"]))
    return first(lambda fd=fd: step(fd) for fd in range(4096))


@attempt("reads the host's file by a chroot that .. leaves")
def _():
    os.mkdir("/tmp/cell")
    os.chroot("/tmp/cell")
    os.chdir(UP)
    return "chroot worked" + (secret(read(UP + TRAPS["file"])) or "")


@attempt("reads the host's file through a symbolic link", safe_outside=True)
def _():
    link = f"/tmp/link-{os.getpid()}"
    os.symlink(TRAPS["file"], link)
    try:
        return secret(read(link))
    finally:
        os.unlink(link)


@attempt("reads a file through the descriptors of any process", safe_outside=True)
def _():
    return readable(p for p in glob.glob("/proc/[0-9]*/fd/*") if os.path.isfile(p))


@attempt("reads a file through the mapped files of any process")
def _():
    return readable(glob.glob("/proc/[0-9]*/map_files/*"))


@attempt("opens a file of the host by its inode (shocker)")
def _():
    mount = os.open(os.__file__, os.O_RDONLY)
    # The root directory of most file systems is inode 2; the handle has its number and its generation.
    handles = [struct.pack("IiQ", 8, 1, 2), struct.pack("IiQ", 8, 1, 128), struct.pack("IiII", 8, 0x81, 2, 0)]
    return first(lambda h=h: "a handle of / opens as %d" % syscall("open_by_handle_at", mount, h, 0) for h in handles)


@attempt("finds a trap's text anywhere in the files of the sandbox")
def _():
    places = ("/etc", "/run", "/var", "/home", "/root", "/tmp", "/workspace", "/dev/shm", "/mnt", "/srv")
    return readable(path for place in places for path in below(place))


# Programs and files of ours, and the root


@attempt("opens its own program for writing (CVE-2019-5736)")
def _():
    return writable(["/proc/self/exe", "/proc/thread-self/exe", sys.executable, os.path.realpath(sys.executable)])


@attempt("opens the program of pid 1 for writing (CVE-2019-5736)")
def _():
    return writable(["/proc/1/exe"])


@attempt("opens the program of pid 1 for writing through a held descriptor (CVE-2019-5736)")
def _():
    fd = os.open("/proc/1/exe", os.O_PATH)
    return writable([f"/proc/self/fd/{fd}"])


@attempt("overwrites what is in /run/toolcell")
def _():
    return writable(below("/run/toolcell"))


@attempt("puts a file into /run/toolcell")
def _():
    return writable(["/run/toolcell/new"], os.O_WRONLY | os.O_CREAT)


@attempt("removes or renames what is in /run/toolcell")
def _():
    def removes(path):
        if can(lambda: os.rename(path, path + "2")) or can(lambda: os.unlink(path)):
            return f"{path} is gone"
    return first(lambda p=p: removes(p) for p in below("/run/toolcell"))


@attempt("changes the mode, the times or the attributes of a file of the root")
def _():
    paths = [os.__file__, sys.executable, "/usr", "/etc", "/", "/run/toolcell", *below("/run/toolcell")]
    changes = {
        "chmod": lambda p: os.chmod(p, 0o777), "utime": lambda p: os.utime(p, (1, 1)),
        "chown": lambda p: os.chown(p, os.getuid(), os.getgid()), "setxattr": lambda p: os.setxattr(p, "user.x", b"1"),
        "chattr": lambda p: fcntl.ioctl(os.open(p, os.O_RDONLY), 0x40086602, struct.pack("L", 0x80)),
    }
    return " ".join(f"{name} of {p}," for p in paths for name, change in changes.items() if can(lambda: change(p)))


@attempt("writes in the root's folders")
def _():
    places = ("/tmp/", "/workspace/", "/dev/shm/", "/proc/", *([HOME + "/"] if HOME else []))
    return " ".join(p for p, mode, _ in EVERYTHING if stat.S_ISDIR(mode) and os.access(p, os.W_OK)
                    and not (p + "/").startswith(places))


@attempt("puts a symbolic link in the place of a mount point")
def _():
    def swap(place):
        os.rename(place, place + ".old")
        os.symlink("/", place)
        return f"{place} is a link now"
    return first(lambda p=p: swap(p) for p in ("/tmp", "/workspace", "/dev/shm", "/run/toolcell", "/proc", "/dev"))


@attempt("finds a writable place without noexec, nosuid and nodev")
def _():
    need = os.ST_NOEXEC | os.ST_NOSUID | os.ST_NODEV
    return " ".join(p for p, mode, _ in EVERYTHING if stat.S_ISDIR(mode) and os.access(p, os.W_OK)
                    and (os.statvfs(p).f_flag | (os.ST_NOEXEC if HOME and p.startswith(HOME) else 0)) & need != need)


def execute_from(place):
    program = f"{place}/program-{os.getpid()}"
    shutil.copy(os.path.realpath(program_named("true")), program)
    try:
        os.chmod(program, 0o755)
        return exits(lambda: os.execv(program, ["true"])) == 0 and f"{program} ran"
    finally:
        os.unlink(program)


def map_executable_from(place, late):
    path = f"{place}/code-{os.getpid()}"
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o700)
    try:
        os.write(fd, b"\xc3" * mmap.PAGESIZE)
        prot = mmap.PROT_READ if late else mmap.PROT_READ | mmap.PROT_EXEC
        libc.mmap.restype = ctypes.c_void_p
        at = libc.mmap(None, ctypes.c_size_t(mmap.PAGESIZE), prot, mmap.MAP_PRIVATE, fd, ctypes.c_long(0))
        if at == ctypes.c_void_p(-1).value:
            checked(-1)
        if late:
            checked(libc.mprotect(ctypes.c_void_p(at), ctypes.c_size_t(mmap.PAGESIZE), prot | mmap.PROT_EXEC))
        return f"a file in {place} is executable memory"
    finally:
        os.unlink(path)


for _place in ("/tmp", "/workspace", "/dev/shm"):
    _safe = _place == "/tmp"
    attempt(f"runs a program copied to {_place}", _safe)(functools.partial(execute_from, _place))
    attempt(f"maps a file in {_place} as code", _safe)(functools.partial(map_executable_from, _place, False))
    attempt(f"turns a mapped file in {_place} into code", _safe)(functools.partial(map_executable_from, _place, True))


@attempt("runs a program copied to /tmp through the loader")
def _():
    program = shutil.copy(os.path.realpath(program_named("true")), f"/tmp/loaded-{os.getpid()}")
    loaders = glob.glob("/lib*/ld-linux*.so.*") + glob.glob("/lib/ld-musl-*.so.1")
    return first(lambda p=p: exits(lambda: os.execv(p, [p, program])) == 0 and f"{p} ran it" for p in loaders)


# Settings of the kernel


KERNEL_FILES = {
    "the SysRq trigger": "/proc/sysrq-trigger",
    "the core dump handler": "/proc/sys/kernel/core_pattern",
    "the module loader's path": "/proc/sys/kernel/modprobe",
    "the hotplug handler's path": "/proc/sys/kernel/hotplug",
    "the host name's file": "/proc/sys/kernel/hostname",
    "a network setting": "/proc/sys/net/*/*",
    "a memory setting": "/proc/sys/vm/*",
    "the table of binary formats": "/proc/sys/fs/binfmt_misc/*",
    "the limits of namespaces": "/proc/sys/user/*",
    "an interrupt's affinity": "/proc/irq/*/smp_affinity",
    "a PCI device's registers": "/proc/bus/pci/*/*",
    "the memory type ranges": "/proc/mtrr",
    "the id maps of pid 1": "/proc/1/[ugp]*id_map",
    "the autogroup of pid 1": "/proc/1/autogroup",
    "a powercap or firmware file": "/sys/[fd]*/*/*/*",
    "a cgroup's release agent": "/sys/fs/cgroup/**/release_agent",
    "a cgroup's release notice": "/sys/fs/cgroup/**/notify_on_release",
    "a cgroup's list of processes": "/sys/fs/cgroup/**/cgroup.procs",
    "a cgroup's memory limit": "/sys/fs/cgroup/**/memory.*max*",
}
for _what, _files in KERNEL_FILES.items():
    attempt(f"writes {_what}")(lambda files=_files: writable(glob.glob(files, recursive=True) or [files]))


@attempt("opens anything below /proc/sys for writing")
def _():
    return writable(below("/proc/sys"))


@attempt("opens anything of the kernel's in /proc for writing")
def _():
    def kernels():
        for name in os.listdir("/proc"):
            path = "/proc/" + name
            if not name.isdigit() and not os.path.islink(path) and name != "sys":
                yield from below(path) if os.path.isdir(path) else [path]
    return writable(kernels())


@attempt("opens anything below /sys for writing")
def _():
    return writable(below("/sys"))


@attempt("lowers its oom_score_adj below the server's")
def _():
    def lower(score):
        with open("/proc/self/oom_score_adj", "w") as f:
            f.write(str(score))
        return f"oom_score_adj is {score}"
    return first(lambda s=s: lower(s) for s in (-1000, -1, TRAPS["oom_score_adj"] - 1))


@attempt("raises one of its limits")
def _():
    def higher(name):
        what = getattr(resource, name)
        soft, hard = resource.getrlimit(what)
        if hard != resource.RLIM_INFINITY:
            resource.setrlimit(what, (soft, hard + 1))
            return f"{name} is {hard + 1}"
    got = []
    for name in dir(resource):
        if name.startswith("RLIMIT_") and can(lambda: got.append(higher(name))) and got[-1]:
            return got[-1]


@attempt("gets a better priority than it has")
def _():
    return first([
        lambda: f"nice {os.nice(-1)}",
        lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)) or "SCHED_FIFO",
        lambda: os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1)) or "SCHED_RR",
        lambda: syscall("ioprio_set", 1, 0, 1 << 13) or "realtime I/O",
    ])


@attempt("pins more memory than the kernel gives to everyone")
def _():
    room = mmap.mmap(-1, 64 << 20)
    at = ctypes.addressof(ctypes.c_char.from_buffer(room))
    return checked(libc.mlock(ctypes.c_void_p(at), ctypes.c_size_t(64 << 20))) or "64 MiB are locked"


# Devices and terminals


HARMLESS = {os.makedev(1, minor) for minor in (3, 5, 7, 8, 9)} | {os.makedev(5, 0), os.makedev(5, 2)}

for _name, _mode, _device in (("null", stat.S_IFCHR, (1, 3)), ("mem", stat.S_IFCHR, (1, 1)),
                              ("kmsg", stat.S_IFCHR, (1, 11)), ("sda", stat.S_IFBLK, (8, 0)),
                              ("vda", stat.S_IFBLK, (254, 0)), ("fuse", stat.S_IFCHR, (10, 229))):
    @attempt(f"makes a device node of {_name}")
    def _(name=_name, mode=_mode, device=os.makedev(*_device)):
        def make(place):
            os.mknod(f"{place}/{name}-node", mode | 0o666, device)
            return f"{place}/{name}-node"
        return first(lambda p=p: make(p) for p in ("/dev", "/tmp", "/workspace", "/dev/shm", "/run/toolcell", HOME))


@attempt("opens a device of the host by name")
def _():
    names = ("mem kmem kmsg port sd[a-z]* vd[a-z]* nvme* xvd* dm-* loop* sr* md* kvm fuse net/tun vhost* userio uinput "
             "uhid input/* dri/* snd/* snapshot mapper/* cpu_dma_latency hpet hwrng nvram rtc* watchdog* tpm* vsock "
             "rfkill console tty[0-9]* ttyS* vcs* hidraw* usb* bus/*/*/* btrfs-control autofs cuse ppp ptmx mqueue/*")
    paths = (p for name in names.split() for p in glob.glob("/dev/" + name) or ["/dev/" + name])
    return first(lambda p=p: f"{p} opens as {os.open(p, os.O_RDONLY | os.O_NONBLOCK)}" for p in paths)


@attempt("finds any device node that is not one of the harmless ones")
def _():
    return next((f"{p} is device {device:#x}" for p, mode, device in EVERYTHING
                 if (stat.S_ISCHR(mode) or stat.S_ISBLK(mode)) and device not in HARMLESS
                 and can(lambda: os.close(os.open(p, os.O_RDONLY | os.O_NONBLOCK)))), None)


@attempt("changes a device node that it shares with the host")
def _():
    paths = [p for p in glob.glob("/dev/*") if stat.S_ISCHR(os.lstat(p).st_mode)]
    return first(lambda p=p: change(p) or f"changed {p}" for p in paths
                 for change in (lambda p: os.chmod(p, 0o666), lambda p: os.utime(p), os.unlink))


@attempt("types into a terminal with TIOCSTI (CVE-2017-5226)")
def _():
    fds = [0, 1, 2, *(os.open(p, os.O_RDONLY | os.O_NOCTTY) for p in ["/dev/tty", *glob.glob("/dev/pts/[0-9]*")]
                      if can(lambda: os.close(os.open(p, os.O_RDONLY | os.O_NOCTTY))))]
    return first(lambda fd=fd: fcntl.ioctl(fd, 0x5412, b"x") and f"TIOCSTI works on {fd}" for fd in fds)


@attempt("types into a terminal with TIOCLINUX")
def _():
    return first(lambda fd=fd: fcntl.ioctl(fd, 0x541C, b"\3") and f"TIOCLINUX works on {fd}" for fd in (0, 1, 2))


@attempt("has a terminal of the host's")
def _():
    return first([lambda: [fd for fd in range(3) if os.isatty(fd)],
                  lambda: f"/dev/tty opens as {os.open('/dev/tty', os.O_RDWR)}"])


# Users and capabilities


def status(pid="self"):
    return dict(line.split(":\t", 1) for line in read(f"/proc/{pid}/status").decode().splitlines() if ":\t" in line)


@attempt("has a capability")
def _():
    header, caps = struct.pack("Ii", 0x20080522, 0), ctypes.create_string_buffer(24)
    checked(libc.capget(header, caps))
    bounding = [n for n in range(41) if libc.prctl(23, n, 0, 0, 0) == 1]
    ambient = [n for n in range(41) if libc.prctl(47, 1, n, 0, 0) == 1]
    return (any(caps.raw) or bounding or ambient) and f"{caps.raw.hex()}, bounding {bounding}, ambient {ambient}"


@attempt("raises a capability with capset")
def _():
    header = struct.pack("Ii", 0x20080522, 0)
    return first(lambda n=n: syscall("capset", header, struct.pack("6I", *one(n))) or f"has {n}" for n in range(41))


def one(number):
    """Returns the two words of each of the three capability sets, with this one in all of them."""
    low, high = (1 << number) & 0xFFFFFFFF, (1 << number) >> 32
    return low, low, low, high, high, high


@attempt("raises an ambient capability")
def _():
    return first(lambda n=n: checked(libc.prctl(47, 2, n, 0, 0)) or f"has {n}" for n in range(41))


@attempt("gives a file a capability")
def _():
    path = f"/tmp/cap-{os.getpid()}"
    with open(path, "w"):
        os.setxattr(path, "security.capability", struct.pack("<5I", 0x02000001, 0xFFFFFFFF, 0, 0x1FF, 0))
    return "security.capability is set"


@attempt("loosens its securebits")
def _():
    return checked(libc.prctl(28, 0x2F, 0, 0, 0)) or "securebits are set"


@attempt("switches no_new_privs off")
def _():
    if libc.prctl(39, 0, 0, 0, 0) != 1:
        return "it is off"
    return checked(libc.prctl(38, 0, 0, 0, 0)) or "it could be switched"


@attempt("runs without a seccomp filter, or switches it off", safe_outside=True)
def _():
    if libc.prctl(21, 0, 0, 0, 0) != 2:
        return f"mode {libc.prctl(21, 0, 0, 0, 0)}"
    return checked(libc.prctl(22, 0, 0, 0, 0)) or "it could be switched off"


@attempt("becomes another user")
def _():
    wanted = [0, 1, 1000, TRAPS["uid"]]
    changes = (os.setuid, os.seteuid, lambda n: os.setreuid(n, n), lambda n: os.setresuid(n, n, n))
    return first(lambda c=c, n=n: c(n) or f"is {os.getresuid()}" for c in changes for n in wanted if n != os.getuid())


@attempt("becomes another group")
def _():
    changes = (os.setgid, os.setegid, lambda n: os.setresgid(n, n, n), lambda n: os.setgroups([n]))
    return first(lambda c=c, n=n: c(n) or f"is {os.getresgid()}, {os.getgroups()}"
                 for c in changes for n in (0, 1, 4, 6, 1000) if n != os.getgid())


@attempt("changes its file system user id")
def _():
    libc.setfsuid(0)
    return libc.setfsuid(-1) == 0 and os.getuid() != 0 and "fsuid is 0"


@attempt("is in a group of the host's")
def _():
    # 65534 is the code's own, and what groups read as that are not mapped: where only one id is, the kernel lets nobody
    # leave them.
    return set(os.getgroups()) - {65534} and f"groups {os.getgroups()}"


@attempt("finds a setuid program that would be honoured", safe_outside=True)
def _():
    return next((p for p, mode, _ in EVERYTHING if stat.S_ISREG(mode) and mode & (stat.S_ISUID | stat.S_ISGID)
                 and not os.statvfs(p).f_flag & os.ST_NOSUID), None)


@attempt("becomes root by running a setuid program")
def _():
    for name in ("su", "sudo", "mount", "passwd", "newgrp", "chsh", "pkexec", "newuidmap"):
        program = program_named(name)
        if program:
            with subprocess.Popen([program], stdin=-1, stdout=-1, stderr=-1) as p:  # pipes
                time.sleep(0.05)
                ids = can(lambda: status(p.pid)) and status(p.pid).get("Uid", "").split()
                p.kill()
            if ids and len(set(ids)) > 1:
                return f"{name} runs as {ids}"


@attempt("makes a setuid program of its own")
def _():
    for place in ("/tmp", "/workspace", "/dev/shm"):
        shutil.copy(os.path.realpath(program_named("id")), f"{place}/id")
        os.chmod(f"{place}/id", 0o6755)
        if exits(lambda: os.execv(f"{place}/id", ["id"])) == 0:
            return f"{place}/id ran"


# Calls that must not reach the kernel at all


NOW = struct.pack("qq", 1 << 30, 0)
PAGE = ctypes.create_string_buffer(4096)

# Refused means EPERM, EACCES or ENOSYS: any other error says that the kernel has looked at the arguments.
DOORS = {
    "acct": (b"/tmp/acct",), "add_key": (b"user", b"x", b"y", 1, -3), "afs_syscall": (0, 0, 0, 0, 0),
    "bpf": (0, struct.pack("16I", 2, 4, 4, 1, *[0] * 12), 64), "cachestat": (-1, 0, 0, 0), "clock_adjtime": (0, struct.pack("I204x", 2)),
    "clock_settime": (0, NOW), "create_module": (b"x", 4096), "delete_module": (b"x", 0), "fanotify_init": (0x200, 0),
    "fanotify_mark": (-1, 1, 1, AT_FDCWD, b"/"), "finit_module": (0, b"", 0), "fsopen": (b"tmpfs", 0),
    "fspick": (AT_FDCWD, b"/", 0), "get_kernel_syms": (0,), "init_module": (PAGE, 4096, b""),
    "io_cancel": (0, 0, 0), "io_destroy": (0,), "io_getevents": (0, 0, 0, 0, 0), "io_pgetevents": (0, 0, 0, 0, 0, 0),
    "io_setup": (0, 0), "io_submit": (0, 0, 0), "io_uring_setup": (1, PAGE), "ioperm": (0x80, 1, 1), "iopl": (3,), "kcmp": (os.getpid(), 1, 0, 1, 1),
    "kexec_file_load": (0, 0, 0, b"", 0), "kexec_load": (0, 0, 0, 0), "keyctl": (0, -3, 1),
    "lookup_dcookie": (1, PAGE, 4096), "migrate_pages": (0, 1, PAGE, PAGE), "mincore": (1, 1, 0), "modify_ldt": (0, PAGE, 16),
    "mount_setattr": (AT_FDCWD, b"/", 0, struct.pack("4Q", 1, 0, 0, 0), 32),
    "move_mount": (AT_FDCWD, b"/tmp", AT_FDCWD, b"/usr", 0), "move_pages": (1, 0, 0, 0, 0, 0),
    "name_to_handle_at": (AT_FDCWD, b"/", struct.pack("Ii", 128, 0) + bytes(128), PAGE, 0), "nfsservctl": (0, 0, 0),
    "open_by_handle_at": (0, struct.pack("IiQ", 8, 1, 2), 0), "open_tree": (AT_FDCWD, b"/", 1),
    "open_tree_attr": (AT_FDCWD, b"/", 1, 0, 0), "openat2": (AT_FDCWD, b"/", bytes(24), 24), "sync_file_range": (-1, 0, 0, 0),
    "perf_event_open": (struct.pack("IIQ", 1, 128, 0) + bytes(112), 0, -1, -1, 0), "pidfd_getfd": (0, 0, 0),
    "pivot_root": (b"/tmp", b"/tmp"), "process_madvise": (0, PAGE, 0, 0, 0),
    "process_vm_readv": (os.getpid(), PAGE, 0, PAGE, 0, 0), "process_vm_writev": (os.getpid(), PAGE, 0, PAGE, 0, 0),
    "ptrace": (0, 0, 0, 0), "query_module": (0, 0, 0, 0, 0), "quotactl": (0x80000100, b"/dev/sda", 0, 0),
    "quotactl_fd": (0, 0x80000700, 0, PAGE), "remap_file_pages": (0, 0, 0, 0, 0),
    "request_key": (b"user", b"x", 0, 0), "seccomp": (99, 0, 0), "setdomainname": (b"x", 1), "sethostname": (b"x", 1),
    "settimeofday": (NOW, 0), "swapoff": (b"/tmp/swap",), "swapon": (b"/tmp/swap", 0), "syncfs": (-1,), "sysfs": (3, 0, 0),
    "uselib": (b"/tmp/x",), "userfaultfd": (1,), "vhangup": (), "vmsplice": (1, PAGE, 0, 0),
}
for _name, _args in DOORS.items():
    @attempt(f"makes the call {_name}")
    def _(name=_name, args=_args):
        try:
            return f"returned {syscall(name, *args)}"
        except OSError as e:
            if e.errno in DENIED:
                raise
            return f"reached the kernel: {e}"


# Calls that must not reach the kernel with these arguments. Each would fail there, but with another error.


def refused(call):
    try:
        return f"returned {checked(call())}"
    except OSError as e:
        if e.errno in DENIED:
            raise
        return f"reached the kernel: {e}"


def with_a_socket(call, family=socket.AF_INET, kind=socket.SOCK_DGRAM):
    with socket.socket(family, kind) as s:
        return call(s.fileno())


ARGUMENTS = {
    "loads a seccomp filter with prctl": lambda: libc.prctl(22, 2, 0, 0, 0),
    "switches system calls to another handler": lambda: libc.prctl(59, 99, 0, 0, 0),
    "asks for speculation": lambda: libc.prctl(53, 99, 0, 0, 0),
    "writes headers of IP itself": lambda: with_a_socket(lambda fd: libc.setsockopt(fd, 0, 3, PAGE, 0)),
    "sets options of IP packets": lambda: with_a_socket(lambda fd: libc.setsockopt(fd, 0, 4, PAGE, 99)),
    "joins a group with sources": lambda: with_a_socket(lambda fd: libc.setsockopt(fd, 0, 39, PAGE, 0)),
    "turns an IPv6 socket into another": lambda: with_a_socket(lambda fd: libc.setsockopt(fd, 41, 1, PAGE, 4), socket.AF_INET6),
    "joins an anycast group": lambda: with_a_socket(lambda fd: libc.setsockopt(fd, 41, 27, PAGE, 0), socket.AF_INET6),
    "chooses how TCP avoids congestion": lambda: with_a_socket(lambda fd: libc.setsockopt(fd, 6, 13, b"?", 1)),
    "gives TCP another protocol above it": lambda: with_a_socket(lambda fd: libc.setsockopt(fd, 6, 31, b"?", 1)),
    "repairs a TCP connection": lambda: with_a_socket(lambda fd: libc.setsockopt(fd, 6, 19, PAGE, 0)),
    "encapsulates in UDP": lambda: with_a_socket(lambda fd: libc.setsockopt(fd, 17, 100, PAGE, 0)),
    "marks packets": lambda: with_a_socket(lambda fd: libc.setsockopt(fd, 1, 36, PAGE, 0)),
    "sends without copying": lambda: with_a_socket(lambda fd: libc.setsockopt(fd, 1, 60, PAGE, 0)),
    "attaches a socket filter": lambda: with_a_socket(lambda fd: libc.setsockopt(fd, 1, 26, PAGE, 0)),
    "attaches a BPF program to a socket": lambda: with_a_socket(lambda fd: libc.setsockopt(fd, 1, 50, PAGE, 0)),
    "attaches a filter for reused ports": lambda: with_a_socket(lambda fd: libc.setsockopt(fd, 1, 51, PAGE, 0)),
    "attaches a BPF program for reused ports": lambda: with_a_socket(lambda fd: libc.setsockopt(fd, 1, 52, PAGE, 0)),
    "hides a socket filter in the upper bits": lambda: with_a_socket(lambda fd: libc.syscall(
        *map(ctypes.c_long, ((54, 208)[ARCH], fd, 1 << 32 | 1, 1 << 32 | 26, 0, 0)))),
    "takes a lease of a file": lambda: libc.fcntl(os.open("/tmp", os.O_RDONLY), 1024, 99),
    "makes an MPTCP socket": lambda: libc.socket(socket.AF_INET, socket.SOCK_STREAM, 262),
    "makes a UDP-Lite socket": lambda: libc.socket(socket.AF_INET, socket.SOCK_DGRAM, 136),
    "sends out-of-band data": lambda: with_a_socket(lambda fd: libc.send(fd, b"x", 1, 1), socket.AF_UNIX),
    "types for the terminal": lambda: libc.ioctl(0, 0x5412, b"x"),
    "pretends that a console wrote": lambda: libc.ioctl(0, 0x541C, PAGE),
    "changes its limit on core files": lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)) or 0,
    "changes it for another process": lambda: resource.prlimit(os.getpid(), resource.RLIMIT_CORE, (0, 0)) and 0,
}
for _name, _call in ARGUMENTS.items():
    @attempt(_name, safe_outside=True)
    def _(call=_call):
        return refused(call)


def small_modules():
    """Gives sources of modules that nobody has mapped."""
    return [p for p in sorted(glob.glob(os.path.dirname(os.__file__) + "/*.py")) if os.path.getsize(p) > 2 * mmap.PAGESIZE]


@attempt("reads only what others have read lately (RWF_NOWAIT)", safe_outside=True)
def _():
    fd = os.open(small_modules()[0], os.O_RDONLY)
    os.pread(fd, 1 << 20, 0)
    return f"{os.preadv(fd, [bytearray(9)], 0, 8)} bytes are in memory"


@attempt("hides that flag among the upper bits")
def _():
    fd, vector = os.open(os.__file__, os.O_RDONLY), array.array("Q", [ctypes.addressof(PAGE), 9])
    return f"{syscall('preadv2', fd, vector.buffer_info()[0], 1, 0, 0, 1 << 32 | 8)} bytes are in memory"


@attempt("reads without leaving it in memory (RWF_DONTCACHE)")
def _():
    return f"{os.preadv(os.open(os.__file__, os.O_RDONLY), [bytearray(9)], 0, 0x80)} bytes"


@attempt("drops a file of the root from memory (POSIX_FADV_DONTNEED)", safe_outside=True)
def _():
    def dropped(path):
        fd = os.open(path, os.O_RDONLY)
        os.pread(fd, 1 << 20, 0)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        with mmap.mmap(fd, 0, prot=mmap.PROT_READ) as pages:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_majflt
            pages[0]
            return resource.getrusage(resource.RUSAGE_SELF).ru_majflt > before and f"{path} was read again"
    return first(lambda p=p: dropped(p) for p in small_modules()[:20])


@attempt("starts a core handler of the host")
def _():
    # With a limit of just 1 the kernel writes no core and pipes none (fs/coredump.c).
    limits = resource.getrlimit(resource.RLIMIT_CORE)
    return limits != (1, 1) and f"the limits are {limits}"


@attempt("queues signals that the host's user pays for")
def _():
    # Of real-time signals each one is kept (signal(7)).
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN])
    for n in range(5000):
        if libc.sigqueue(os.getpid(), int(signal.SIGRTMIN), 0) != 0:
            return None
    return "5000 of them"


@attempt("reboots")
def _():
    # Ctrl-Alt-Del off and on: should it ever work, the host lives on.
    return first(lambda c=c: syscall("reboot", 0xFEE1DEAD, 672274793, c, 0) == 0 and "it works"
                 for c in (0, 0x89ABCDEF))


@attempt("turns the clock with adjtimex")
def _():
    return f"returned {syscall('adjtimex', struct.pack('I204x', 2))}"  # ADJ_FREQUENCY, to 0


@attempt("switches off the randomness of addresses", safe_outside=True)
def _():
    return f"the persona was {syscall('personality', 0x0040000)}"


@attempt("reads the kernel's log with syslog()")
def _():
    return f"{syscall('syslog', 3, PAGE, 4096)} bytes of it"


def run_code(code):
    """Runs machine code in anonymous memory, and returns what it leaves in eax."""
    room = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    room.write(code)
    return ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(room)))()


@attempt("makes a 32-bit call by int 0x80")
def _():
    # push rbx; mov eax, 20 (getpid); int 0x80; pop rbx; ret
    code = bytes.fromhex("53b814000000cd805bc3")
    # A kernel that has no such calls ends the process by SIGSEGV, our filter by SIGSYS.
    return ARCH == 0 and exits(lambda: os._exit(run_code(code) != os.getpid())) == 0 and "getpid works"


@attempt("makes a call by its x32 number")
def _():
    return ARCH == 0 and f"getpid gave {checked(libc.syscall(ctypes.c_long(0x40000000 | 39)))}"


# Namespaces


@attempt("makes a namespace with unshare")
def _():
    return first(lambda n=n, f=f: syscall("unshare", f) == 0 and f"a new {n} namespace" for n, f in NAMESPACES.items())


@attempt("makes a namespace with clone")
def _():
    def clone(name, flag):
        pid = syscall("clone", flag | signal.SIGCHLD, 0, 0, 0, 0)
        if pid == 0:
            os._exit(0)
        return f"a new {name} namespace"
    return first(lambda n=n, f=f: clone(n, f) for n, f in NAMESPACES.items() if n != "time")


@attempt("makes a namespace with clone3")
def _():
    def clone(name, flag):
        pid = syscall("clone3", struct.pack("11Q", flag, 0, 0, 0, signal.SIGCHLD, *[0] * 6), 88)
        if pid == 0:
            os._exit(0)
        return f"a new {name} namespace"
    return first(lambda n=n, f=f: clone(n, f) for n, f in NAMESPACES.items())


@attempt("joins a namespace with setns")
def _():
    links = glob.glob("/proc/[0-9]*/ns/*")
    return first(lambda p=p: syscall("setns", os.open(p, os.O_RDONLY), 0) == 0 and p for p in links)


@attempt("joins the namespaces of a process with setns and a pidfd")
def _():
    return first(lambda p=p, f=f: syscall("setns", syscall("pidfd_open", p, 0), f) == 0 and f"those of {p}"
                 for p in [1, *processes()] for f in NAMESPACES.values())


@attempt("is in a namespace of the host's", safe_outside=True)
def _():
    mine = {name: os.readlink(f"/proc/self/ns/{name}") for name in TRAPS["namespaces"]}
    shared = [name for name in mine if mine[name] == TRAPS["namespaces"][name]]
    return shared and f"shares {shared}"


@attempt("climbs to an outer namespace by NS_GET_PARENT or NS_GET_USERNS")
def _():
    here = {os.stat(p).st_ino for p in glob.glob("/proc/self/ns/*")}

    def climb(name, request):
        fd = fcntl.ioctl(os.open(f"/proc/self/ns/{name}", os.O_RDONLY), request)
        return os.fstat(fd).st_ino not in here and f"ioctl {request:#x} on {name} gave fd {fd}"
    return first(lambda n=n, r=r: climb(n, r) for n in NAMESPACES for r in (0xB701, 0xB702))


@attempt("walks to other mount namespaces by NS_MNT_GET_PREV")
def _():
    fd = os.open("/proc/self/ns/mnt", os.O_RDONLY)
    return first(lambda r=r: f"got fd {fcntl.ioctl(fd, r, bytes(16))}" for r in (0x8010B70B, 0x8010B70C))


# Mounts


def mount(source, target, kind, flags=0, data=0):
    syscall("mount", source.encode(), target.encode(), kind and kind.encode(), flags, data)
    return f"{kind or flags} is mounted on {target}"


def mount_points():
    return [line.split()[1] for line in read("/proc/self/mounts").decode().splitlines()]


@attempt("mounts a file system")
def _():
    os.makedirs("/tmp/mount", exist_ok=True)
    kinds = ("tmpfs proc sysfs devpts mqueue cgroup cgroup2 overlay ramfs debugfs tracefs securityfs bpf fuse nfs 9p "
             "virtiofs binfmt_misc configfs hugetlbfs ext4 devtmpfs")
    return first(lambda k=k: mount(k, "/tmp/mount", k) for k in kinds.split())


@attempt("mounts a cgroup hierarchy and takes its release agent (CVE-2022-0492)")
def _():
    os.makedirs("/tmp/cgroup", exist_ok=True)
    return first(lambda o=o: mount("cgroup", "/tmp/cgroup", "cgroup", 0, o) and writable(["/tmp/cgroup/release_agent"])
                 for o in (b"rdma", b"memory", b"none,name=toolcell-test"))


@attempt("binds a folder over another")
def _():
    return first(lambda t=t: mount("/tmp", t, 0, MS_BIND)
                 for t in ("/usr", "/etc", "/proc", "/run/toolcell", "/workspace"))


@attempt("moves a mount")
def _():
    return first(lambda s=s: mount(s, "/workspace", 0, MS_MOVE) for s in ("/tmp", "/proc", "/dev/shm"))


@attempt("remounts the root writable")
def _():
    return first(lambda f=f: mount("/", "/", 0, MS_REMOUNT | f) for f in (0, MS_BIND))


@attempt("remounts what is mounted without its flags")
def _():
    return first(lambda t=t, f=f: mount(t, t, 0, MS_REMOUNT | f) for t in mount_points() for f in (0, MS_BIND))


@attempt("unmounts a cover")
def _():
    covers = ["/run/toolcell", "/proc/sys", "/proc/kcore", "/proc/keys", "/proc/sysrq-trigger", "/proc", "/dev", "/"]
    return first(lambda t=t, f=f: syscall("umount2", t.encode(), f) == 0 and f"{t} is unmounted"
                 for t in covers for f in (0, 2, 8))


@attempt("looks at other mount namespaces with listmount")
def _():
    def list_of(namespace):
        request = struct.pack("IIQQQ", 32, 0, 0xFFFFFFFFFFFFFFFF, 0, namespace)
        return f"{syscall('listmount', request, PAGE, 100, 0)} mounts of namespace {namespace}"
    return first(lambda n=n: list_of(n) for n in range(1, 20))


# Other processes, pid 1 above all


@attempt("sees a process that is not the sandbox's", safe_outside=True)
def _():
    others = [pid for pid in processes() if pid != 1]
    return others and str(others)


@attempt("finds the host's process by its number", safe_outside=True)
def _():
    return os.kill(TRAPS["pid"], 0) or "it is there"


@attempt("signals the host's process", safe_outside=True)
def _():
    pid, number = TRAPS["pid"], 0 if OUTSIDE else signal.SIGKILL
    info = struct.pack("3i", number, 0, -1) + bytes(116)
    return first([
        lambda: os.kill(pid, number) or "by kill", lambda: os.kill(-pid, number) or "by kill of its group",
        lambda: syscall("tgkill", pid, pid, number) == 0 and "by tgkill",
        lambda: syscall("rt_sigqueueinfo", pid, number, info) == 0 and "by rt_sigqueueinfo",
        lambda: syscall("pidfd_send_signal", syscall("pidfd_open", pid, 0), number, 0, 0) == 0 and "by pidfd",
    ])


@attempt("signals everyone in sight")
def _():
    os.kill(-1, signal.SIGUSR1)  # the test sees who it reached; we ignore it


@attempt("ends or stops pid 1")
def _():
    for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGSEGV, signal.SIGSYS):
        os.kill(1, number)
    time.sleep(0.1)  # if it worked, the run ends here, and the test misses the rest


def opaque(name, path, look=read):
    """Makes an attempt to see something of pid 1."""
    @attempt(name)
    def _():
        got = look(path)
        return got and f"{got!r:.60}"


opaque("reads the environment of pid 1", "/proc/1/environ")
opaque("reads the memory map of pid 1", "/proc/1/maps")
opaque("reads the detailed memory map of pid 1", "/proc/1/smaps")
opaque("reads the auxiliary vector of pid 1", "/proc/1/auxv")
opaque("reads the kernel stack of pid 1", "/proc/1/stack")
opaque("reads which call pid 1 is in", "/proc/1/syscall")
opaque("lists the descriptors of pid 1", "/proc/1/fd", os.listdir)
opaque("lists the mapped files of pid 1", "/proc/1/map_files", os.listdir)
opaque("reads the link to the program of pid 1", "/proc/1/exe", os.readlink)
opaque("reads the link to the root of pid 1", "/proc/1/root", os.readlink)
opaque("reads the link to the cwd of pid 1", "/proc/1/cwd", os.readlink)
opaque("reads the links to the namespaces of pid 1", "/proc/1/ns/mnt", os.readlink)


def regions(pid, kind):
    """Returns (start, end) of the memory of a process with these rights."""
    for line in read(f"/proc/{pid}/maps", size=1 << 22).decode().splitlines():
        span, rights = line.split()[:2]
        if kind in rights and "[v" not in line:
            start, end = (int(x, 16) for x in span.split("-"))
            yield start, end


@attempt("reads the memory of pid 1")
def _():
    fd = os.open("/proc/1/mem", os.O_RDONLY)
    return first(lambda s=s: f"{len(os.pread(fd, 4096, s))} bytes" for s, _ in regions(1, "r"))


@attempt("writes the memory of pid 1")
def _():
    fd = os.open("/proc/1/mem", os.O_RDWR)
    # Already possible: code that can do that can do more.
    return first(lambda s=s: f"{os.pwrite(fd, os.pread(fd, 8, s), s)} bytes" for s, _ in regions(1, "w"))


@attempt("opens the memory of pid 1")
def _():
    return first(lambda f=f: f"/proc/1/mem opens as {os.open('/proc/1/mem', f)}" for f in (os.O_RDONLY, os.O_RDWR))


@attempt("changes settings of pid 1")
def _():
    return writable(["/proc/1/oom_score_adj", "/proc/1/coredump_filter", "/proc/1/clear_refs", "/proc/1/comm",
                     "/proc/1/attr/current", "/proc/1/timerslack_ns", "/proc/1/setgroups", "/proc/1/sched"])


@attempt("traces a process")
def _():
    ATTACH, SEIZE = 16, 0x4206
    return first(lambda p=p, r=r: syscall("ptrace", r, p, 0, 0) == 0 and f"traces {p}"
                 for p in [1, *processes()] for r in (SEIZE, ATTACH))


@attempt("lets others trace it, and is traced")
def _():
    libc.prctl(0x59616D61, ctypes.c_ulong(-1 & 0xFFFFFFFFFFFFFFFF), 0, 0, 0)
    return syscall("ptrace", 0, 0, 0, 0) == 0 and "PTRACE_TRACEME works"


@attempt("reads the memory of a process with process_vm_readv")
def _():
    room = ctypes.create_string_buffer(64)
    vector = struct.pack("PL", ctypes.addressof(room), 64)
    return first(lambda p=p: f"{syscall('process_vm_readv', p, vector, 1, vector, 1, 0)} bytes of {p}"
                 for p in [1, os.getppid(), *processes()])


@attempt("takes a descriptor of another process with pidfd_getfd")
def _():
    return first(lambda p=p, fd=fd: f"fd {fd} of {p} as {syscall('pidfd_getfd', syscall('pidfd_open', p, 0), fd, 0)}"
                 for p in [1, os.getppid(), *processes()] for fd in range(8))


@attempt("opens a pidfd of the host's process", safe_outside=True)
def _():
    return f"pidfd {syscall('pidfd_open', TRAPS['pid'], 0)}"


# What is inherited


@attempt("finds the server's secret in its environment", safe_outside=True)
def _():
    return secret(json.dumps(dict(os.environ)).encode()) or secret(read("/proc/self/environ"))


@attempt("has a variable of the server's", safe_outside=True)
def _():
    return TRAPS["variable"] in os.environ and TRAPS["variable"]


@attempt("finds the server's secret in the environment of any process", safe_outside=True)
def _():
    return readable(glob.glob("/proc/[0-9]*/environ"))


@attempt("finds a secret in its own memory", safe_outside=True)
def _():
    fd = os.open("/proc/self/mem", os.O_RDONLY)

    def search(start, end):
        while start < end:
            got = secret(os.pread(fd, min(end - start, 1 << 20), start))
            if got:
                return got
            start += (1 << 20) - 64
    return first(lambda s=s, e=e: search(s, e) for s, e in regions("self", "r"))


@attempt("finds a secret in its command line or auxiliary vector")
def _():
    return readable(["/proc/self/cmdline", "/proc/self/auxv", "/proc/1/cmdline"])


@attempt("inherits a descriptor that is not one of its four", safe_outside=True)
def _():
    return INHERITED[3 if HOME else 4:] and str(INHERITED)


@attempt("gets something from its standard input")
def _():
    return os.read(0, 100) or (os.fstat(0).st_rdev != os.makedev(1, 3) and f"not /dev/null: {os.fstat(0)}")


@attempt("has outputs that are more than pipes", safe_outside=True)
def _():
    return any(not stat.S_ISFIFO(os.fstat(fd).st_mode) for fd in (1, 2)) and f"{os.fstat(1)}, {os.fstat(2)}"


# The control socket


OTHERS = len(ATTEMPTS)


def control():
    return socket.socket(fileno=os.dup(CONTROL))


def in_host():
    """Returns the addresses of the host's traps that a unix socket of the host could reach."""
    return ["\0" + TRAPS["stream"], "\0" + TRAPS["dgram"], TRAPS["socket"]]


@attempt("has a control socket that is more than a unix stream")
def _():
    with control() as s:
        kind = (s.getsockopt(socket.SOL_SOCKET, 39), s.type)  # SO_DOMAIN
        return kind != (socket.AF_UNIX, socket.SOCK_STREAM) and str(kind)


@attempt("connects the control socket to the host's")
def _():
    with control() as s:
        return first(lambda a=a: s.connect(a) or f"connected to {a!r}" for a in in_host())


@attempt("sends to the host's socket through the control socket")
def _():
    with control() as s:
        return first(lambda a=a: f"{s.sendto(b'', socket.MSG_DONTWAIT, a)} bytes to {a!r}" for a in in_host())


@attempt("takes a name among the host's abstract sockets with the control socket")
def _():
    with control() as s, socket.socket(socket.AF_UNIX) as ours:
        s.bind("\0squatted")
        try:
            ours.bind("\0squatted")
        except OSError:
            return None  # the name is one of the sandbox's own
        return f"is {s.getsockname()!r}"


@attempt("listens among the host's abstract sockets with the control socket")
def _():
    with control() as s:
        return s.listen() or "listens"


# The loopback, and what the kernel makes in every network namespace: these lead nowhere.
FALLBACK = ("lo", "tunl0", "gre0", "gretap0", "erspan0", "ip_vti0", "ip6_vti0", "sit0", "ip6tnl0", "ip6gre0")


@attempt("lists the host's network addresses through the control socket")
def _():
    room = array.array("B", bytes(4096))
    size, _ = struct.unpack("iP", fcntl.ioctl(CONTROL, 0x8912, struct.pack("iP", 4096, room.buffer_info()[0])))
    names = [bytes(room[at:at + 16]).split(b"\0")[0].decode() for at in range(0, size, 40)]
    addresses = [socket.inet_ntoa(bytes(room[at + 20:at + 24])) for at in range(0, size, 40)]
    others = [a for name, a in zip(names, addresses) if name not in FALLBACK and not a.startswith("127.")]  # lo:1 is ours
    return others and f"{dict(zip(names, addresses))}"


def device(sock, index):
    """Returns the name of a network device (SIOCGIFNAME)."""
    return fcntl.ioctl(sock, 0x8910, struct.pack("16si20x", b"", index))[:16].rstrip(b"\0").decode()


@attempt("lists the host's network devices through the control socket")
def _():
    return first(lambda i=i: device(CONTROL, i) not in FALLBACK and device(CONTROL, i) for i in range(1, 64))


@attempt("gets the host's network namespace through the control socket (SIOCGSKNS)")
def _():
    return f"fd {fcntl.ioctl(CONTROL, 0x894C)}"


@attempt("opens the file behind the control socket (SIOCUNIXFILE)")
def _():
    return f"fd {fcntl.ioctl(CONTROL, 0x89E0)}"


@attempt("learns the server's pid from the control socket (SO_PEERCRED)")
def _():
    with control() as s:
        pid, uid, gid = struct.unpack("3i", s.getsockopt(socket.SOL_SOCKET, 17, 12))
        return pid not in (0, 1) and f"pid {pid}, uid {uid}, gid {gid}"  # 1 is the sandbox's own, which made it


@attempt("learns the server's pid from a message's credentials (SCM_CREDENTIALS)")
def _():
    with control() as s:
        s.setsockopt(socket.SOL_SOCKET, 16, 1)  # SO_PASSCRED
        send_frame({"type": "call", "id": 9, "method": "list_servers", "params": {}})
        for _, kind, data in s.recvmsg(1 << 16, 100)[1]:
            pid, _, _ = struct.unpack("3i", data)
            return kind == 2 and pid != 0 and f"pid {pid}"


@attempt("does something to the server with its pidfd (SO_PEERPIDFD)")
def _():
    with control() as s:
        fd = s.getsockopt(socket.SOL_SOCKET, 77)
        namespaces = range(0xFF01, 0xFF0B)  # PIDFD_GET_…_NAMESPACE
        return first([lambda: syscall("pidfd_send_signal", fd, 0, 0, 0) == 0 and "it can be signalled",
                      lambda: f"fd 0 as {syscall('pidfd_getfd', fd, 0, 0)}",
                      *(lambda r=r: f"a namespace as {fcntl.ioctl(fd, r)}" for r in namespaces)])


# Frames that no runner sends


def send_frame(message):
    body = json.dumps(message).encode()
    os.write(CONTROL, struct.pack(">I", len(body)) + body)


def receive_frame():
    def exactly(size):
        data = b""
        while len(data) < size:
            more = os.read(CONTROL, size - len(data))
            if not more:
                raise EOFError("the host hung up")
            data += more
        return data
    return json.loads(exactly(struct.unpack(">I", exactly(4))[0]))


def ask(method, /, **params):
    """Sends a frame of our own making, and returns the host's answer. Raises OSError if the host refuses."""
    number = os.getpid() << 20 | time.monotonic_ns() & 0xFFFFF
    send_frame({"type": "call", "id": number, "method": method, "params": params})
    while True:
        reply = receive_frame()
        if reply.get("id") == number:
            break
    if "error" in reply:
        raise PermissionError(reply["error"]["message"])
    return json.dumps(reply.get("result"))


GRANTED, FORBIDDEN, FORBIDDEN_TOOL = TRAPS["granted_server"], TRAPS["forbidden_server"], TRAPS["forbidden_tool"]


def call(server, tool, **more):
    """Calls a tool, and returns the answer if it is not the server's own error."""
    answer = ask("call_tool", **{"server": server, "tool": tool, "arguments": {}, **more})
    return not json.loads(answer).get("isError") and answer


@attempt("calls a tool of a server that was not granted")
def _():
    return call(FORBIDDEN, FORBIDDEN_TOOL)


for _what, _extra in {
    "granted in the parameters": {"granted": True, "servers": ["*"]},
    "named beside one that was": {"Server": GRANTED, "SERVER": GRANTED},
    "named after one that was": {"server": GRANTED, "SERVER": FORBIDDEN},
    "under another method's name": {"method": "list_servers", "type": "start"},
}.items():
    @attempt(f"calls a tool of a server that was not granted, {_what}")
    def _(extra=_extra):
        return call(**{"server": FORBIDDEN, "tool": FORBIDDEN_TOOL, **extra})


INJECTED = {
    "path": "../../../../etc/passwd", "nested path": f"{GRANTED}/../{FORBIDDEN}", "slash": f"{FORBIDDEN}/",
    "dot": f"./{FORBIDDEN}", "NUL": f"{GRANTED}\0{FORBIDDEN}", "newline": f"{GRANTED}\n{FORBIDDEN}",
    "carriage return": f"{FORBIDDEN}\r", "space": f" {FORBIDDEN} ", "capitals": FORBIDDEN.upper(),
    "long": "a" * (1 << 20), "dunder": "__proto__", "option": "--help", "shell": "$(touch /tmp/x);`id`|id&",
    "star": "*", "empty": "", "percent": FORBIDDEN.replace("v", "%76"),
    "full width": FORBIDDEN.replace("v", "\uff56"), "zero width": FORBIDDEN + "\u200b", "list": [FORBIDDEN],
    "object": {"name": FORBIDDEN}, "number": 0, "null": None,
}
for _what, _text in INJECTED.items():
    @attempt(f"smuggles a server in by its name: {_what}")
    def _(text=_text):
        return call(text, FORBIDDEN_TOOL)

    @attempt(f"smuggles a tool in by its name: {_what}")
    def _(text=_text):
        return call(GRANTED, text.replace(FORBIDDEN, FORBIDDEN_TOOL) if isinstance(text, str) else text)


@attempt("has tools saved outside their folder")
def _():
    names = ("../../x", "/tmp/x", "a/b", "a\0b", ".x", "x.py", "-x", "x\n", "..", "a" * 300, "", "é", "a b")
    return first(lambda n=n: ask("save_tool", name=n, source="def x(): pass") and f"saved as {n!r}" for n in names)


@attempt("calls a method that is not for the sandbox")
def _():
    names = ("exec", "shell", "eval", "start", "run_python", "tools/call", "initialize", "read_file", "resources/read",
             "Call_Tool", "call_tool ", "call_tool\0", "servers", "config", "roots/list", "../call_tool", "")
    return first(lambda m=m: f"{m!r} answered {ask(m, server=FORBIDDEN, tool=FORBIDDEN_TOOL)}" for m in names)


@attempt("finds the servers' secrets in what is told about them")
def _():
    return first([lambda: secret(ask("describe_servers").encode()),
                  *(lambda s=s, m=m: secret(ask(m, server=s).encode()) for s in (GRANTED, FORBIDDEN)
                    for m in ("describe_server", "list_tools", "query_tool_docs"))])


if HOME:
    del ATTEMPTS[OTHERS:]  # it has no control socket


# Sockets


@attempt("connects to the host's abstract socket", safe_outside=True)
def _():
    with socket.socket(socket.AF_UNIX) as s:
        return s.connect("\0" + TRAPS["stream"]) or "connected"


@attempt("sends to the host's abstract datagram socket", safe_outside=True)
def _():
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        return f"{s.sendto(b'hello', chr(0) + TRAPS['dgram'])} bytes"


@attempt("connects to the host's socket in the file system", safe_outside=True)
def _():
    with socket.socket(socket.AF_UNIX) as s:
        return first(lambda p=p: s.connect(p) or f"connected to {p}"
                     for p in (TRAPS["socket"], "/proc/1/root" + TRAPS["socket"], "/proc/self/root" + TRAPS["socket"]))


@attempt("connects to a well-known socket of the host")
def _():
    with socket.socket(socket.AF_UNIX) as s:
        paths = ("/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock",
                 "/run/dbus/system_bus_socket", "/run/systemd/private", "/run/systemd/notify", "/tmp/.X11-unix/X0",
                 "\0/tmp/.X11-unix/X0")
        return first(lambda p=p: s.connect(p) or f"connected to {p}" for p in paths)


@attempt("connects to the host's loopback", safe_outside=True)
def _():
    def reach(address):
        with socket.create_connection((address, TRAPS["port"]), 1):
            return address
    return first(lambda a=a: reach(a) for a in ("127.0.0.1", "0.0.0.0", "::1", "::ffff:127.0.0.1", "localhost"))


@attempt("has the host's loopback take a datagram", safe_outside=True)
def _():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.connect(("127.0.0.1", TRAPS["udp"]))
        s.send(b"hello")
        time.sleep(0.1)
        return s.send(b"still there?") and "nobody refused it"  # an ICMP error comes back if no socket listens


@attempt("reaches an address outside")
def _():
    def reach(address, port):
        with socket.create_connection((address, port), 2):
            return address
    # The cloud's metadata service, the usual gateways, addresses that are kept for documentation, and a name.
    return first(lambda a=a: reach(a, 80) for a in ("169.254.169.254", "10.0.2.2", "172.17.0.1", "192.168.0.1",
                                                    "192.0.2.1", "2001:db8::1", "example.com"))


@attempt("has a network device that is not its loopback")
def _():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        return first(lambda i=i: device(s, i) not in FALLBACK and device(s, i) for i in range(1, 64))


@attempt("sees the host's sockets in /proc/net", safe_outside=True)
def _():
    port = f":{TRAPS['port']:04X} "
    files = ("/proc/net/unix", "/proc/1/net/unix", "/proc/net/tcp", "/proc/1/net/tcp")
    return first(lambda p=p: any(text in read(p, size=1 << 22).decode() for text in (TRAPS["stream"], port)) and p
                 for p in files)


@attempt("opens a socket of a family other than unix and internet", safe_outside=True)
def _():
    def open_one(family):
        fd = libc.socket(family, socket.SOCK_DGRAM, 0)
        return checked(fd if fd >= 0 else libc.socket(family, socket.SOCK_RAW, 0)) and f"family {family}"
    return first(lambda f=f: open_one(f) for f in range(3, 47) if f != socket.AF_INET6 and not (HOME and f == socket.AF_NETLINK))


RAW = socket.SOCK_RAW
for _name, _family, _kind in (("raw internet", 2, RAW), ("raw IPv6", 10, RAW), ("packet", 17, RAW), ("XDP", 44, RAW),
                              ("netlink", 16, RAW), ("vsock", 40, 1), ("crypto", 38, 5), ("Bluetooth", 31, RAW)):
    @attempt(f"opens a {_name} socket", safe_outside=_name == "netlink", of_server=_name != "netlink")
    def _(family=_family, kind=_kind):
        return f"fd {checked(libc.socket(family, kind, 1 if family in (2, 10) else 0))}"


@only_server("opens a netlink socket for more than routes")
def _():
    return first(lambda n=n: f"protocol {n} as fd {checked(libc.socket(socket.AF_NETLINK, RAW, n))}" for n in range(1, 32))


def ask_netlink(kind, body):
    """Asks the kernel to change something of the network (rtnetlink(7)). Raises OSError if it refuses."""
    with socket.socket(socket.AF_NETLINK, RAW, 0) as s:
        s.settimeout(5)
        s.send(struct.pack("IHHII", 16 + len(body), kind, 0x605, 1, 0) + body)  # REQUEST, ACK, CREATE
        number = -struct.unpack_from("i", s.recv(4096), 16)[0]
    if number:
        raise OSError(number, os.strerror(number))
    return f"request {kind} was granted"


@only_server("changes the network by netlink")
def _():
    address = struct.pack("BBBBIHH4s", 2, 24, 0, 0, 1, 8, 2, bytes((192, 0, 2, 1)))
    link = struct.pack("BBHiIIHH6sxx", 0, 0, 0, 0, 0, 0, 10, 3, b"extra\0")
    down = struct.pack("BBHiII", 0, 0, 0, 1, 0, 1)
    return first(lambda k=k, b=b: ask_netlink(k, b) for k, b in ((20, address), (16, link), (16, down)))


@only_server("sees by netlink a device that is not its loopback")
def _():
    return set(name for _, name in socket.if_nameindex()) - set(FALLBACK) and str(socket.if_nameindex())


@attempt("changes its network devices")
def _():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        return fcntl.ioctl(s, 0x8914, struct.pack("16sh22x", b"lo", 0)) and "the loopback is down"


# What is shared by name: the host's and the neighbour's


@attempt("connects to the neighbour's abstract socket")
def _():
    with socket.socket(socket.AF_UNIX) as s:
        return s.connect("\0" + TRAPS["neighbour_stream"]) or "connected"


@attempt("connects to the neighbour's loopback port")
def _():
    with socket.create_connection(("127.0.0.1", TRAPS["neighbour_port"]), 1):
        return "connected"


@attempt("reads the neighbour's files")
def _():
    return readable(f"{place}/neighbour" for place in ("/tmp", "/workspace", "/dev/shm"))


@attempt("sees the neighbour's processes")
def _():
    return first(lambda p=p: TRAPS["neighbour_mark"].encode() in read(p) and p
                 for p in glob.glob("/proc/[0-9]*/cmdline"))


@only_code("sees by inotify which files the neighbour opens")
def _():
    fd = checked(libc.inotify_init1(os.O_NONBLOCK))
    checked(libc.inotify_add_watch(fd, os.__file__.encode(), 0x20))  # IN_OPEN; the neighbour does so all the time
    return select.select([fd], [], [], 2)[0] and f"event {os.read(fd, 100).hex()}"


@attempt("sees by F_NOTIFY which files the neighbour reads")
def _():
    seen = []
    signal.signal(signal.SIGIO, lambda *_: seen.append(1))
    folder = os.open(os.path.dirname(os.__file__), os.O_RDONLY)
    fcntl.fcntl(folder, fcntl.F_NOTIFY, fcntl.DN_ACCESS | fcntl.DN_MULTISHOT)
    time.sleep(2)
    return seen and f"{len(seen)} signals"


def segment(key):
    at = checked(libc.shmget(key, 64, 0))
    libc.shmat.restype = ctypes.c_void_p
    address = libc.shmat(at, None, 0o10000)
    return address != ctypes.c_void_p(-1).value and secret(ctypes.string_at(address, 64))


@attempt("reads the host's System V shared memory", safe_outside=True)
def _():
    return segment(TRAPS["shm_key"])


@attempt("reads the neighbour's System V shared memory")
def _():
    return segment(TRAPS["neighbour_key"])


@attempt("finds a System V object that it has not made")
def _():
    finders = (lambda k: libc.shmget(k, 1, 0), lambda k: libc.msgget(k, 0), lambda k: libc.semget(k, 1, 0))
    return next((f"number {get(key)}" for get in finders for key in (TRAPS["shm_key"], TRAPS["neighbour_key"])
                 if get(key) != -1), None)


@attempt("opens the neighbour's POSIX message queue")
def _():
    try:
        rt = ctypes.CDLL("librt.so.1", use_errno=True)  # glibc before 2.34
    except OSError:
        rt = libc
    return f"opened as {checked(rt.mq_open(TRAPS['neighbour_queue'].encode(), os.O_RDONLY | os.O_NONBLOCK))}"


@attempt("reads the host's shared memory file", safe_outside=True)
def _():
    return secret(read("/dev/shm/" + TRAPS["shm_name"]))


@attempt("finds keys in a keyring")
def _():
    return first([lambda: secret(read("/proc/keys")), lambda: read("/proc/keys"),
                  *(lambda k=k: f"keyring {syscall('keyctl', 0, k, 0)}" for k in range(-8, 0))])


# What a server leaves for others, and for its next start


@only_server("gives a file of the root, of a mount or of ours a name in its HOME")
def _():
    sources = (os.__file__, sys.argv[0], "/run/toolcell/init", "/etc/passwd")
    return first(lambda s=s: os.link(s, f"{HOME}/linked-{os.getpid()}") or f"{s} has a name there" for s in sources)


@only_server("gives what is in its HOME to another user")
def _():
    path = f"{HOME}/given-{os.getpid()}"
    open(path, "w").close()
    return first(lambda n=n: os.chown(path, n, -1) or f"it belongs to {n}" for n in (0, 1, 1000, TRAPS["uid"]) if n != os.getuid())


@only_server("runs a setuid program of HOME as another user")
def _():
    program = shutil.copy(os.path.realpath(program_named("id")), f"{HOME}/id")
    os.chmod(program, 0o6755)
    said = subprocess.run([program, "-u"], capture_output=True, text=True).stdout.strip()
    return os.statvfs(program).f_flag & os.ST_NOSUID == 0 and "setuid counts" or said != str(os.getuid()) and f"it ran as {said}"


@only_server("changes what it is shown read-only")
def _():
    shown = sys.argv[0]
    fd = os.open(shown, os.O_RDONLY)
    os.symlink(shown, f"{HOME}/shown-{os.getpid()}")
    return first([*(lambda p=p: writable([p]) for p in (shown, f"/proc/self/fd/{fd}", f"{HOME}/shown-{os.getpid()}")),
                  lambda: os.open(os.path.dirname(shown) + "/new", os.O_CREAT | os.O_WRONLY), lambda: os.unlink(shown) or "gone",
                  lambda: os.chmod(shown, 0o777) or "chmod"])


@only_server("reads what another server keeps, or the record of its own")
def _():
    return readable(below(TRAPS["homes"])) or os.listdir(TRAPS["homes"])


# What is hidden


@attempt("learns the host's name", safe_outside=True)
def _():
    return TRAPS["hostname"] in (socket.gethostname(), platform.node()) and TRAPS["hostname"]


@attempt("has another name than toolcell", safe_outside=True)
def _():
    return socket.gethostname() != "toolcell" and socket.gethostname()


HIDDEN = {
    "the memory as /proc/kcore": "/proc/kcore", "the kernel's log": "/proc/kmsg",
    "the list of timers": "/proc/timer_list", "the list of keys": "/proc/keys",
    "the scheduler's state": "/proc/sched_debug", "the latencies": "/proc/latency_stats",
    "the counts of pages": "/proc/kpagecount", "the flags of pages": "/proc/kpageflags",
    "the interrupts": "/proc/interrupts", "the table of SCSI devices": "/proc/scsi/scsi",
    "the firmware": "/sys/firmware/*/*", "the power meters": "/sys/devices/virtual/powercap/*/*",
    "the host's locks": "/proc/locks", "the free memory of each zone": "/proc/zoneinfo",
    "the free memory by size": "/proc/buddyinfo", "the counts of memory management": "/proc/vmstat",
    "the use of swap space": "/proc/swaps", "the counts of disks": "/proc/diskstats",
    "the counts of soft interrupts": "/proc/softirqs", "the scheduler's counts": "/proc/schedstat",
    "the memory allocator's pools": "/proc/slabinfo", "the kernel's mappings": "/proc/vmallocinfo",
    "the counts of cgroups": "/proc/cgroups", "the counts of keys": "/proc/key-users", "the use of ciphers": "/proc/crypto",
    "the interrupts' settings": "/proc/irq/*/*", "the counts of file systems": "/proc/fs/*/*/*",
    "the disks": "/proc/partitions", "the modules": "/proc/modules", "the devices on buses": "/proc/bus/*/*",
    "the debug files": "/sys/kernel/debug/*", "the tracing files": "/sys/kernel/tracing/*",
}
for _what, _files in HIDDEN.items():
    @attempt(f"reads {_what}")
    def _(files=_files):
        return first(lambda p=p: read(p, size=64) and p for p in glob.glob(files))


@attempt("learns the host's memory from /proc/meminfo", safe_outside=True)
def _():
    total = int(read("/proc/meminfo").split()[1])
    return total == TRAPS["memory"] and f"{total} kB"


@attempt("learns the host's load from /proc/loadavg", safe_outside=True)
def _():
    load = read("/proc/loadavg").decode().split()
    return load[:3] != ["0.00"] * 3 and f"{load}"


@attempt("learns the host's uptime from /proc/uptime", safe_outside=True)
def _():
    return next((f"{seconds} s" for seconds in read("/proc/uptime").split() if float(seconds) > 1), None)


@attempt("counts what the host does in /proc/stat", safe_outside=True)
def _():
    lines = [line.split() for line in read("/proc/stat").decode().splitlines()]
    return next((f"{line[:2]}" for line in lines if line[0] in ("cpu", "intr", "ctxt", "processes", "softirq")
                 and any(int(n) for n in line[1:])), None)


@attempt("reads addresses in the kernel")
def _():
    def addresses(path, pattern):
        found = [a for a in re.findall(pattern, read(path, size=1 << 16).decode()) if int(a, 16)]
        return found and f"{path}: {found[0]}"
    return first([lambda: addresses("/proc/kallsyms", r"(?m)^([0-9a-f]{8,})"),
                  lambda: addresses("/proc/modules", r"0x([0-9a-f]{8,})"),
                  lambda: addresses("/proc/iomem", r"(?m)-([0-9a-f]{8,})")])


@attempt("sees which of its pages lie where in memory")
def _():
    PAGE[0] = b"x"
    with open("/proc/self/pagemap", "rb", 0) as f:
        entry, = struct.unpack("Q", os.pread(f.fileno(), 8, ctypes.addressof(PAGE) // mmap.PAGESIZE * 8))
        return entry & ((1 << 55) - 1) and f"frame {entry & ((1 << 55) - 1):#x}"


# One after the other


# These are faults of this file, not of the sandbox's: an attempt that was not really made was not held.
BROKEN = (NameError, TypeError, AttributeError, LookupError, ImportError, struct.error, ctypes.ArgumentError)


def report(function):
    """Makes an attempt. Returns whether it was held, and why or what it got."""
    try:
        got = function()
    except BROKEN as e:
        return False, f"broken: {type(e).__name__}: {e}"
    except BaseException as e:
        return True, f"{type(e).__name__}: {e}"
    return not got, str(got or "")


def held(function):
    """Makes an attempt in a process of its own. Returns what report does."""
    global REPORT
    result, REPORT = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(result)
        good, what = report(function)
        os.write(REPORT, json.dumps([good, what[:200]]).encode())
        os._exit(0)
    os.close(REPORT)
    try:
        in_time = select.select([result], [], [], PATIENCE)[0]
        # One write, one read: a child of the attempt's may keep the end of the file from us.
        answer = in_time and os.read(result, 4096)
    finally:
        os.close(result)
        os.kill(pid, signal.SIGKILL)
        status = os.waitpid(pid, 0)[1]
    if answer:
        return json.loads(answer)
    if not in_time:
        return False, "hung"
    return status == signal.SIGSYS, f"ended by signal {status}"


def main():
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # see "signals everyone in sight"
    chosen = [(name, function) for name, safe_outside, function in ATTEMPTS if safe_outside or not OUTSIDE]
    print(json.dumps({"attempts": len(chosen)}))
    for name, function in chosen:
        good, what = held(function)
        print(json.dumps({"name": name, "held": good, "what": what}), flush=True)


def serve():
    """Is an MCP server with one tool, which makes the attempts and returns what they print."""
    requests, answers = os.fdopen(os.dup(0)), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for line in requests:
        request = json.loads(line)
        if "id" not in request:
            continue
        answer = {"jsonrpc": "2.0", "id": request["id"]}
        if request["method"] == "initialize":
            answer["result"] = {"protocolVersion": request["params"]["protocolVersion"], "capabilities": {"tools": {}},
                                "serverInfo": {"name": "battery", "version": "1"}}
        elif request["method"] == "tools/list":
            answer["result"] = {"tools": [{"name": "attack", "inputSchema": {"type": "object"}}]}
        elif request["method"] == "tools/call":
            with contextlib.redirect_stdout(io.StringIO()) as said:
                main()
            answer["result"] = {"content": [{"type": "text", "text": said.getvalue()}]}
        else:
            answer["error"] = {"code": -32601, "message": "no such method"}
        os.write(answers, json.dumps(answer).encode() + b"\n")


serve() if HOME else main()
