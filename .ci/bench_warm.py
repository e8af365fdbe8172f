#!/usr/bin/env python3
"""Compares warm runs of builds of toolcell, in turn: what a client waits for the answer to print(1).

    bench_warm.py ROUNDS IMAGE BUILD…

Each build serves a client of its own, with its own state folder, and gets a request when the others are idle. It prints
percentiles of each, and what they are beside those of the first build: on a machine that does other work too, the lower ones say
more.
"""
from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from typing import Any

PAUSE = 0.015  # seconds in which the sandbox for the next run is made
PERCENTILES = (10, 25, 50, 90)


class Server:
    def __init__(self, program: str, image: str, state: str) -> None:
        env = dict(os.environ, TOOLCELL_STATE_DIR=state, TOOLCELL_IMAGE=image, TOOLCELL_LOG_LEVEL="ERROR")
        self.process = subprocess.Popen([program, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
        self.times: list[float] = []
        self.sent = 0
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        self.request("initialize", client)
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def write(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdout is not None
        self.sent += 1
        self.write({"jsonrpc": "2.0", "id": self.sent, "method": method, "params": params})
        for line in self.process.stdout:
            message: dict[str, Any] = json.loads(line)
            if message.get("id") == self.sent:
                return message
        sys.exit("the server has ended")

    def run(self) -> None:
        begun = time.perf_counter()
        answer = self.request("tools/call", {"name": "run_python", "arguments": {"code": "print(1)"}})
        self.times.append(time.perf_counter() - begun)
        if answer.get("error") or answer["result"].get("isError"):
            sys.exit(f"a run failed: {answer}")
        time.sleep(PAUSE)


def main() -> None:
    rounds, image, builds = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    with tempfile.TemporaryDirectory() as state:
        servers = [Server(build, image, f"{state}/{n}") for n, build in enumerate(builds)]
        for _ in range(30):
            for server in servers:
                server.run()
        for server in servers:
            server.times.clear()
        for _ in range(rounds):
            for server in random.sample(servers, len(servers)):
                server.run()
        for build, server in zip(builds, servers):
            shown = []
            for p in PERCENTILES:
                value, first = (sorted(s.times)[len(s.times) * p // 100] for s in (server, servers[0]))
                shown.append(f"p{p} {value * 1000:.3f} ms ({value / first - 1:+.1%})")
            print(build, *shown, sep="  ")
            assert server.process.stdin is not None
            server.process.stdin.close()
            server.process.wait(10)


if __name__ == "__main__":
    main()
