"""The Python side of toolcell: runs pieces of code inside the sandbox.

The host starts __main__.py with a stream socket as fd 3 and speaks frames on it: four bytes of big-endian length, then
that many bytes of JSON, an object with a "type". stdout and stderr belong to the code alone.

    runner -> host   ready, then call (many, in parallel), at the end done
    host -> runner   start, then one reply for each call

The process runs the code and ends as any Python does, so that atexit, threads and C buffers behave. It is not pid 1 of
the sandbox: an init, which the host brings, collects zombies and ends everything when the host hangs up.

Imports are few and late, since an image without bytecode compiles each module at every start: modules that only some
runs need are imported by the functions that need them.
"""
