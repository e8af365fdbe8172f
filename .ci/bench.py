#!/usr/bin/env python3
"""Times runs of toolcell beside podman, bubblewrap and bare Python, on the same image. `make bench` calls this.

    bench.py TOOLCELL LAYOUT DATA_LAYOUT [--rounds N] [--calls FILE] [--check]

LAYOUT and DATA_LAYOUT are OCI layouts; the second has pandas. FILE is what TestCallFigures found. What is
measured is printed as a table and kept in docs/benchmarks/speed.json. Machines differ and are noisy: what counts are
the ratios of one session, so peers take turns with toolcell. With --check nothing is kept: the ratios of a short session
are compared with those of the file, and it is an error if one has become much worse.
"""
from __future__ import annotations

import argparse
import datetime
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

GROUPBY = "import pandas as pd\nprint(pd.DataFrame({'k': list('abca') * 50, 'v': range(200)}).groupby('k').sum())"
SPINNING = """import os, time
end = time.monotonic() + 10
for _ in range(3): os.fork()
while time.monotonic() < end: pass
"""
WORSE = 0.6  # of the kept ratio: what a noisy machine does not explain
HERE = pathlib.Path(__file__).resolve().parent.parent


class Server:
    """`toolcell serve` and its one client, which does no more than a client must: what it costs is measured too."""

    def __init__(self, program: str, state: pathlib.Path, image: str, **settings: str) -> None:
        env = {"HOME": str(state), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TOOLCELL_STATE_DIR": str(state / "state"),
               "TOOLCELL_IMAGE": image, "TOOLCELL_LOG_LEVEL": "ERROR", **settings}
        start = time.perf_counter()
        self.process: Any = subprocess.Popen([program, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, cwd=state)
        self.count = 0
        self.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {},
                                "clientInfo": {"name": "bench", "version": "1"}})
        self.initialized = time.perf_counter() - start
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def write(self, message: dict[str, Any]) -> None:
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def send(self, method: str, params: dict[str, Any]) -> Any:
        self.count += 1
        self.write({"jsonrpc": "2.0", "id": self.count, "method": method, "params": params})

    def send_run(self, code: str) -> Any:
        self.send("tools/call", {"name": "run_python", "arguments": {"code": code}})

    def answer(self) -> Any:
        """Returns the next answer, to whatever it is."""
        while True:
            message = json.loads(self.process.stdout.readline())
            if "id" in message and "method" not in message:
                if message["result"].get("isError"):
                    raise SystemExit(message)
                return message

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        self.send(method, params)
        return self.answer()

    def run(self, code: str) -> Any:
        """Runs code and returns the seconds it took."""
        start = time.perf_counter()
        self.send_run(code)
        self.answer()
        return time.perf_counter() - start

    def sustained(self, code: str, clients: int, seconds: float) -> Any:
        """Returns runs a second if there are always so many under way."""
        start, done, under_way = time.perf_counter(), 0, clients
        for _ in range(clients):
            self.send_run(code)
        while under_way:
            self.answer()
            done += 1
            under_way -= 1
            if time.perf_counter() - start < seconds:
                self.send_run(code)
                under_way += 1
        return done / (time.perf_counter() - start)

    def burst(self, code: str, calls: int) -> Any:
        """Returns the seconds until the last of so many calls at once is answered."""
        start = time.perf_counter()
        for _ in range(calls):
            self.send_run(code)
        for _ in range(calls):
            self.answer()
        return time.perf_counter() - start

    def settle(self, code: str, runs: int = 10) -> None:
        """Runs code until the sandboxes that wait are as they will be."""
        for _ in range(runs):
            self.run(code)
            time.sleep(0.2)

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(60)


def command(*args: Any, env: dict[str, str] | None = None) -> Any:
    start = time.perf_counter()
    done = subprocess.run(args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, timeout=120)
    took = time.perf_counter() - start
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, args))}: {done.stderr.decode()[-500:]}")
    return took


def spaced(measure: Callable[[], Any], rounds: int, gap: float) -> Any:
    """Measures again and again, with time between for what is done after an answer."""
    out = []
    for _ in range(rounds):
        out.append(measure())
        time.sleep(gap)
    return out


def descendants(pid: int) -> Any:
    out = []
    for path in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        for child in path.read_text().split():
            out += [int(child), *descendants(int(child))]
    return out


def kilobytes(pid: int, *names: str) -> Any:
    total = 0
    for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.split(":")[0] in names:
            total += int(line.split()[1])
    return total


def memory(server: Server) -> Any:
    """Returns MB of the server, and of each waiting fork: the memory that it and its pid 1 do not share."""
    time.sleep(1)
    forks = []
    for pid in descendants(server.process.pid):
        try:
            status = pathlib.Path(f"/proc/{pid}/status").read_text()
            ids = [line.split()[1:] for line in status.splitlines() if line.startswith("NSpid:")][0]
            # A fork's pid namespace is in that of its template.
            if ids[-1] == "1" and len(ids) > 2:
                own = [pid, *descendants(pid)]
                forks.append(sum(kilobytes(p, "Private_Clean", "Private_Dirty") for p in own) / 1024)
        except OSError:
            continue  # it has just ended
    idle = kilobytes(server.process.pid, "Rss") / 1024
    return idle, forks


def ticks(pid: int) -> Any:
    """Returns the processor time of a process, of its children that have ended, and of what it has started."""
    total = 0
    for each in [pid, *descendants(pid)]:
        try:
            fields = pathlib.Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += sum(int(field) for field in fields[11:15])
    return total


def summary(seconds: list[float]) -> Any:
    seconds = sorted(seconds)
    return {"p50": round(1000 * statistics.median(seconds), 2), "p95": round(1000 * seconds[int(len(seconds) * 0.95)], 2),
            "min": round(1000 * seconds[0], 2), "n": len(seconds)}


class Bench:
    def __init__(self, program: str, layout: Any, data: Any, rounds: int, work: Any) -> None:
        self.program, self.work, self.rounds = program, work, rounds
        self.image, self.data = f"oci:{layout}", f"oci:{data}"
        self.out: dict[str, Any] = {"when": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
                    "kernel": os.uname().release, "cpus": os.cpu_count(), "load": os.getloadavg(), "user": os.getuid()}

    def all(self) -> None:
        one = Server(self.program, self.work, self.image)
        one.settle("print(1)")
        # Bytecode is made in the background after the first run.
        time.sleep(5)
        one.close()
        self.starts()
        self.warm()
        self.neighbor()
        self.pandas()
        self.idle()
        self.flat()
        self.out["load at the end"] = os.getloadavg()

    def starts(self) -> None:
        """exec, serve and the peers, in turn."""
        root = next(p for p in (self.work / "state/cache/images/rootfs").iterdir() if not p.name.startswith("host-")) / "root"
        env = {**os.environ, "HOME": str(self.work), "TOOLCELL_STATE_DIR": str(self.work / "state"), "TOOLCELL_IMAGE": self.image}
        python = "/usr/bin/python3" if (root / "usr/bin/python3").exists() else "/usr/local/bin/python3"
        kinds: dict[str, Callable[[], float]] = {
            "toolcell exec": lambda: command(self.program, "exec", "-c", "print(1)", env=env),
            "bare python": lambda: command("/usr/bin/python3", "-I", "-S", "-c", "print(1)"),
        }
        if shutil.which("bwrap"):
            kinds["bubblewrap"] = lambda: command(
                "bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", root, "/", "--proc", "/proc", "--dev", "/dev",
                "--tmpfs", "/tmp", python, "-c", "print(1)")
        podman = self.podman()
        if podman:
            kinds["podman run"] = podman
        took: dict[str, list[float]] = {name: [] for name in kinds}
        took["serve to initialize"] = []
        for name in list(kinds):
            try:
                kinds[name]()
            except Exception as error:
                print(f"leaving out {name}: {error}", file=sys.stderr)
                del kinds[name], took[name]
        for _ in range(max(10, self.rounds // 10)):
            for name, measure in kinds.items():
                took[name].append(measure())
            server = Server(self.program, self.work, self.image, TOOLCELL_START="container")
            took["serve to initialize"].append(server.initialized)
            server.close()
        for name, seconds in took.items():
            self.out[name] = summary(seconds)

    def podman(self) -> Any:
        if not shutil.which("podman"):
            return None
        # It makes a name of the path, in which no part may begin with a dot.
        link = pathlib.Path(tempfile.mkdtemp(dir="/tmp")) / "image"
        link.symlink_to(self.image.partition(":")[2])
        done = subprocess.run(["podman", "pull", "-q", f"oci:{link}"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if done.returncode:
            print("leaving out podman:", done.stderr.decode()[-300:], file=sys.stderr)
            return None
        image = done.stdout.decode().split()[-1]
        same = ["--rm", "--network=none", "--read-only", "--cap-drop=all", "--memory=512m", "--pids-limit=128",
                "--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024", "--entrypoint=python3", image, "-c", "print(1)"]
        # Debian's crun does not work with every mixture of cgroup versions; runc does.
        for runtime in ([], ["--runtime", shutil.which("runc") or "runc"]):
            try:
                command("podman", *runtime, "run", *same)
                return lambda: command("podman", *runtime, "run", *same)
            except RuntimeError as error:
                print(f"podman {' '.join(runtime)}: {error}", file=sys.stderr)
        return None

    def warm(self) -> None:
        for start in ("fork", "container"):
            server = Server(self.program, self.work, self.image, TOOLCELL_START=start)
            server.settle("print(1)")
            rounds = self.rounds if start == "fork" else self.rounds // 4
            self.out[f"warm print(1), {start}"] = summary(spaced(lambda: server.run("print(1)"), rounds, 0.03 if start == "fork" else 0.2))
            if start == "fork":
                idle, forks = memory(server)
                self.out["server, MB"], self.out["waiting forks, MB"] = round(idle, 1), [round(f, 1) for f in forks]
                self.out["warm, awaiting"] = summary(spaced(
                    lambda: server.run("import asyncio; await asyncio.sleep(0)"), rounds // 4, 0.03))
                self.out["burst of 32"] = summary(spaced(lambda: server.burst("print(1)", 32), 5, 2))
            self.out[f"8 clients, runs a second, {start}"] = round(server.sustained("print(1)", 8, 8), 1)
            server.close()

    def neighbor(self) -> None:
        """Whether a run that takes all the processor time it can get slows down those of another server."""
        server, hog = (Server(self.program, self.work, self.image, TOOLCELL_START="fork") for _ in range(2))
        hog.settle("print(1)")
        server.settle("print(1)")
        seconds: dict[str, list[float]] = {"quiet": [], "beside a spinning run": [], "after it": []}
        for _ in range(4):  # in turns, since the machine may change
            seconds["quiet"] += spaced(lambda: server.run("print(1)"), self.rounds // 4, 0.03)
            hog.send_run(SPINNING)
            time.sleep(1)
            seconds["beside a spinning run"] += spaced(lambda: server.run("print(1)"), self.rounds // 4, 0.03)
            hog.answer()
            seconds["after it"] += spaced(lambda: server.run("print(1)"), self.rounds // 4, 0.03)
        for when, each in seconds.items():
            self.out[f"warm print(1), {when}"] = summary(each)
        hog.close()
        server.close()

    def pandas(self) -> None:
        server = Server(self.program, self.work, self.data, TOOLCELL_START="fork", TOOLCELL_PRELOAD="numpy,pandas")
        server.run("print(1)")
        time.sleep(20)  # bytecode
        server.close()
        server = Server(self.program, self.work, self.data, TOOLCELL_START="fork", TOOLCELL_PRELOAD="numpy,pandas")
        server.settle(GROUPBY)
        self.out["warm import pandas"] = summary(spaced(lambda: server.run("import pandas"), self.rounds // 2, 0.05))
        self.out["warm groupby"] = summary(spaced(lambda: server.run(GROUPBY), self.rounds // 4, 0.05))
        _, forks = memory(server)
        self.out["waiting forks with pandas, MB"] = [round(f, 1) for f in forks]
        self.out["8 clients with pandas, runs a second"] = round(server.sustained("import pandas", 8, 8), 1)
        server.close()

    def idle(self) -> None:
        """The processor time that the server and its children use while idle."""
        server = Server(self.program, self.work, self.image, TOOLCELL_START="fork")
        server.settle("print(1)")
        time.sleep(5)
        before = ticks(server.process.pid)
        time.sleep(60)
        used = (ticks(server.process.pid) - before) / os.sysconf("SC_CLK_TCK")
        self.out["idle, % of a processor"] = round(100 * used / 60, 3)
        server.close()

    def flat(self) -> None:
        """Whether ten thousand runs make the last ones slower than the first."""
        server = Server(self.program, self.work, self.image, TOOLCELL_START="fork")
        server.settle("print(1)")
        seconds = [server.run("print(1)") for _ in range(10_000)]
        first, last = statistics.median(seconds[:1000]), statistics.median(seconds[-1000:])
        self.out["10,000 runs, the last thousand / the first"] = round(last / first, 3)
        server.close()

    def check(self, kept: Any) -> Any:
        """Measures the most important things, and returns those whose ratio to podman is far from the kept one."""
        one = Server(self.program, self.work, self.image)
        one.settle("print(1)")
        time.sleep(5)
        one.close()
        self.starts()
        server = Server(self.program, self.work, self.image, TOOLCELL_START="fork")
        server.settle("print(1)")
        self.out["warm print(1), fork"] = summary(spaced(lambda: server.run("print(1)"), self.rounds, 0.03))
        self.out["burst of 32"] = summary(spaced(lambda: server.burst("print(1)", 32), 5, 2))
        server.close()
        worse: list[Any] = []
        for name, value in self.out.items():
            if not isinstance(value, dict) or name == "podman run" or name not in kept:
                continue
            now, then = (out["podman run"]["p50"] / out[name]["p50"] for out in (self.out, kept))
            print(f"{name:38} podman / it: {now:8.1f}, kept {then:8.1f}")
            if name.startswith(("toolcell", "warm", "burst", "serve")) and now < then * WORSE:
                worse.append(name)
        return worse

    def table(self) -> None:
        podman = self.out.get("podman run", {}).get("p50")
        print(f"\n{'':38}{'p50 ms':>10}{'p95 ms':>10}{'podman / it':>13}")
        for name, value in self.out.items():
            if isinstance(value, dict):
                ratio = f"{podman / value['p50']:.1f}" if podman else ""
                print(f"{name:38}{value['p50']:10.2f}{value['p95']:10.2f}{ratio:>13}")
        for name, value in self.out.items():
            if not isinstance(value, dict):
                print(f"{name:38}{value}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs=3)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--calls", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    program, layout, data = (os.path.abspath(f) for f in given.files)
    kept = HERE / "docs/benchmarks/speed.json"
    with tempfile.TemporaryDirectory(prefix="toolcell-bench-") as work:
        os.chmod(work, 0o755)
        # A copy, as an installation makes: of what the linker has just written the kernel maps much more than is used.
        # In a folder without the state: libcontainer copies itself at each start where one is in the other.
        os.mkdir(pathlib.Path(work) / "bin")
        program = shutil.copy(program, pathlib.Path(work) / "bin")
        bench = Bench(program, layout, data, given.rounds or (100 if given.check else 300), pathlib.Path(work))
        try:
            if given.check:
                worse = bench.check(json.loads(kept.read_text()))
                sys.exit(f"much worse than it was: {', '.join(worse)}" if worse else 0)
            bench.all()
        finally:
            subprocess.run(["chmod", "-R", "u+w", work])
    if given.calls:
        bench.out.update({name: round(value, 3) for name, value in json.loads(given.calls.read_text()).items()})
    bench.table()
    kept.write_text(json.dumps(bench.out, indent=1) + "\n")


if __name__ == "__main__":
    main()
