"""Starts uv, with what comes over standard input: files to write, its arguments and its environment.

It runs in a sandbox of the image. The proxy, which is in the environment, is known only when that has started.
"""
import json
import os

data = b""
while True:
    chunk = os.read(0, 1 << 16)
    if not chunk:
        break
    data += chunk
task = json.loads(data)
for name, text in task["files"].items():
    with open(name, "w") as f:
        f.write(text)
os.execve(task["args"][0], task["args"], task["env"])
