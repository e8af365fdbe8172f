# What code may do with folders of the host (mounts_test.go): outside is the path of one that it was not given.
import ctypes
import os
import shutil


def read(path):
    with open(path) as f:
        return f.read()


def refused(what, *errors):
    try:
        what()
    except (errors or (OSError,)):
        return True
    return False


assert read("/data/file.txt") == read("/one.txt") == "of open"
assert read("/mine/file.txt") == read("/workspace/deep/er/mine/file.txt") == "of mine"
assert read("/private/file.txt") == read("/tmp/two.txt") == "of private"

# Writing, where it is allowed.
with open("/mine/new.txt", "w") as f:
    f.write("from inside")
assert read("/workspace/deep/er/mine/new.txt") == "from inside"
os.mkdir("/mine/sub")
os.rename("/mine/new.txt", "/mine/sub/moved.txt")
os.rename("/mine/sub/moved.txt", "/mine/new.txt")
os.rmdir("/mine/sub")

# Reading only stays reading only, in every way to write.
for top in ("/data", "/private"):
    file = top + "/file.txt"
    for attempt in (
        lambda: open(file, "a"), lambda: open(top + "/new", "w"), lambda: os.truncate(file, 0), lambda: os.unlink(file),
        lambda: os.rename(file, top + "/other"), lambda: os.mkdir(top + "/d"), lambda: os.symlink("/", top + "/l"),
        lambda: os.chmod(file, 0o777), lambda: os.utime(file, (0, 0)), lambda: os.chown(file, 1, 1),
        lambda: os.link(file, top + "/hard"), lambda: os.setxattr(file, "user.x", b"y"), lambda: os.mkfifo(top + "/fifo"),
        lambda: open("/proc/self/fd/%d" % os.open(file, os.O_RDONLY), "w"),
    ):
        assert refused(attempt)
for file in ("/one.txt", "/tmp/two.txt"):
    assert refused(lambda: open(file, "a")) and refused(lambda: os.chmod(file, 0o777))
libc = ctypes.CDLL(None, use_errno=True)
MS_REMOUNT, MS_BIND = 32, 4096
assert libc.mount(None, b"/data", None, MS_REMOUNT | MS_BIND, None) != 0
assert libc.mount(b"/data", b"/mine", None, MS_BIND, None) != 0
assert libc.umount2(b"/data", 2) != 0

# No program is started from it, no device made.
shutil.copy("/usr/bin/true", "/mine/true")
os.chmod("/mine/true", 0o755)
assert refused(lambda: os.execv("/mine/true", ["true"]), PermissionError)
os.unlink("/mine/true")
assert refused(lambda: os.mknod("/mine/null", 0o20666, os.makedev(1, 3)))

# What lies beside is out of reach: up leads to the sandbox's own root, and links are followed in it.
assert sorted(os.listdir("/data/..")) == sorted(os.listdir("/"))
assert sorted(os.listdir("/data/../..")) == sorted(os.listdir("/"))
assert not os.path.exists(outside)
fd = os.open("/data", os.O_RDONLY | os.O_DIRECTORY)
up = os.open("..", os.O_RDONLY, dir_fd=fd)
assert os.path.samestat(os.fstat(up), os.stat("/"))
os.chdir("/mine")
os.chdir("..")
assert os.getcwd() == "/" and not os.path.exists("outside")
os.chdir("/workspace")
assert refused(lambda: read("/data/away")) and refused(lambda: read("/data/up"))
assert os.path.samestat(os.stat("/data/root"), os.stat("/"))
os.symlink(outside, "/mine/link")
assert refused(lambda: os.listdir("/mine/link"))
os.unlink("/mine/link")
assert refused(lambda: os.link("/data/file.txt", "/mine/hard"))
assert refused(lambda: os.rename("/mine", "/workspace/elsewhere"))
print("all of it")
