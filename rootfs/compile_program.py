"""Compiles the program that its argument names, and writes the file of bytecode that Python can start instead."""
import importlib.util
import marshal
import sys

UNCHECKED_HASH = (1).to_bytes(4, "little")

with open(sys.argv[1], "rb") as f:
    text = f.read()
code = compile(text, sys.argv[1], "exec", dont_inherit=True)
header = importlib.util.MAGIC_NUMBER + UNCHECKED_HASH + importlib.util.source_hash(text)
sys.stdout.buffer.write(header + marshal.dumps(code))
