"""Compiles the package that its argument names, and writes bytecode that Python takes from the package's __pycache__.

As compile_modules.py does, it writes for each file four bytes of big-endian length of its path, four of its content,
then the path, here within the package, and the content.
"""
import importlib.util
import marshal
import os
import sys

UNCHECKED_HASH = (1).to_bytes(4, "little")

folder = sys.argv[1]
for file in sorted(os.listdir(folder)):
    if not file.endswith(".py"):
        continue
    path = os.path.join(folder, file)
    with open(path, "rb") as f:
        text = f.read()
    code = compile(text, path, "exec", dont_inherit=True)
    content = importlib.util.MAGIC_NUMBER + UNCHECKED_HASH + importlib.util.source_hash(text) + marshal.dumps(code)
    name = os.fsencode(os.path.relpath(importlib.util.cache_from_source(path), folder))
    sys.stdout.buffer.write(len(name).to_bytes(4, "big") + len(content).to_bytes(4, "big") + name + content)
