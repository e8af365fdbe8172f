#!/usr/bin/env python3
"""Compares the whole processes of two or more builds of a program, in turn.

    bench_start.py ROUNDS BUILD… -- ARGUMENT…

A BUILD is several files that differ only in where the linker put their functions, as A-1,A-2,A-3 (go build
-ldflags=-randlayout=N): one layout alone decides as much as a change of some per cent. It prints the processor time
and the time that passed, as medians and tenth percentiles, and what they are beside those of the first BUILD.
"""
from __future__ import annotations

import os
import random
import statistics
import sys
import time

Figures = tuple[float, float, float]  # seconds of processor time, seconds, peak memory in MiB


def run(program: str, arguments: list[str], null: int) -> Figures:
    begun = time.perf_counter()
    actions = [(os.POSIX_SPAWN_DUP2, null, fd) for fd in range(3)]
    pid = os.posix_spawn(program, [program, *arguments], os.environ, file_actions=actions)
    _, status, used = os.wait4(pid, 0)
    if status:
        sys.exit(f"{program} ended with {status}")
    return used.ru_utime + used.ru_stime, time.perf_counter() - begun, used.ru_maxrss / 1024


def main() -> None:
    at = sys.argv.index("--")
    rounds, builds, arguments = int(sys.argv[1]), [b.split(",") for b in sys.argv[2:at]], sys.argv[at + 1 :]
    null = os.open(os.devnull, os.O_RDWR)
    taken: list[list[Figures]] = [[] for _ in builds]
    for i in range(-3, rounds):
        for files in zip(*builds):
            for n in random.sample(range(len(builds)), len(builds)):
                figures = run(files[n], arguments, null)
                if i >= 0:
                    taken[n].append(figures)
    first: list[float] = []
    for build, all_figures in zip(builds, taken):
        processor, passed, memory = ([f[k] for f in all_figures] for k in range(3))
        values = [f(v) * 1000 for v in (processor, passed) for f in (statistics.median, lambda v: statistics.quantiles(v, n=10)[0])]
        first = first or values
        shown = (f"{v:.2f} ms ({v / base - 1:+.1%})" for v, base in zip(values, first))
        print(f"{build[0]}: processor time, median {{}}, p10 {{}}; time, median {{}}, p10 {{}}; {statistics.median(memory):.1f} MiB".format(*shown))


if __name__ == "__main__":
    main()
