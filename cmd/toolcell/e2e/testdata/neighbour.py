"""The neighbour: a sandbox that has things of every kind that others might reach, and lives until somebody does.

Before this text the test puts TRAPS, as for escape.py, with the neighbour's own secret.
"""
import ctypes
import os
import select
import socket
import subprocess
import sys

libc = ctypes.CDLL(None)
secret = TRAPS["secret"].encode()  # noqa: F821
key = TRAPS["neighbour_key"]  # noqa: F821

files = ["/tmp/neighbour", "/workspace/neighbour", "/dev/shm/neighbour"]
for path in files:
    with open(path, "wb") as f:
        f.write(secret)
os.environ["NEIGHBOUR"] = secret.decode()

stream = socket.socket(socket.AF_UNIX)
stream.bind("\0" + TRAPS["neighbour_stream"])  # noqa: F821
stream.listen()
loopback = socket.create_server(("127.0.0.1", TRAPS["neighbour_port"]))  # noqa: F821

# Some of these are not allowed on some hosts; the attempts to reach them are held all the same.
libc.shmat.restype = ctypes.c_void_p
segment = libc.shmat(libc.shmget(key, 64, 0o1666), None, 0)
if segment not in (None, ctypes.c_void_p(-1).value):
    ctypes.memmove(ctypes.c_void_p(segment), secret, len(secret))
libc.msgget(key, 0o1666)
libc.semget(key, 1, 0o1666)
try:
    ctypes.CDLL("librt.so.1").mq_open(TRAPS["neighbour_queue"].encode(), os.O_RDWR | os.O_CREAT, 0o666, None)  # noqa: F821
except (OSError, AttributeError):
    pass

# It tells the test that we are here, and goes when we do.
subprocess.Popen(["sleep", TRAPS["neighbour_mark"]])  # noqa: F821

count = 0
while True:
    touched = select.select([stream, loopback], [], [], 0.02)[0]
    if touched or any(open(path, "rb").read() != secret for path in files):
        print("touched:", touched)
        sys.exit(1)
    open(os.__file__, "rb").read(1)
    # Links everywhere, while others start: none of them may be somebody else's.
    for place in ("/tmp", "/workspace", "/dev/shm"):
        link = f"{place}/link-{count % 100}"
        if count >= 100:
            os.unlink(link)
        os.symlink("/", link)
    count += 1
