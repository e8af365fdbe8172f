#!/usr/bin/env python3
"""Times packages of scripts beside `uv run --with`, on the same interpreter: the host's. `make bench-packages` calls this.

    bench_packages.py TOOLCELL [ROUNDS]

uv is the one that toolcell has fetched. It and toolcell take turns, ROUNDS times (5) with cold caches and ten times as
often with warm ones; medians count. What is measured is printed and kept in docs/benchmarks/packages.json. It needs an
index that has pandas: PyPI, which HTTPS_PROXY may lead to.
"""
from __future__ import annotations

import datetime
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from bench import HERE, Server, command, descendants, kilobytes, summary

FROM_OUTSIDE = ("HTTPS_PROXY", "https_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR")
TWENTY = [
    "attrs", "certifi", "click", "colorama", "humanize", "idna", "jinja2", "markupsafe", "more-itertools", "packaging", "pluggy",
    "pytz", "pyyaml", "six", "tabulate", "toml", "tomli", "typing-extensions", "wcwidth", "zipp",
]
PASSES = 4  # of the twenty


def script(package: str, code: str) -> str:
    return f'# /// script\n# dependencies = ["{package}"]\n# ///\n{code}'


def output(*args: Any, env: dict[str, str]) -> str:
    return subprocess.run(args, env=env, stdout=subprocess.PIPE, check=True).stdout.decode().strip()


class Bench:
    def __init__(self, program: str, work: pathlib.Path, rounds: int) -> None:
        self.program, self.work, self.rounds = program, work, rounds
        self.outside = {name: os.environ[name] for name in FROM_OUTSIDE if name in os.environ}
        self.env = {"HOME": str(work), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TOOLCELL_STATE_DIR": str(work / "state"),
                    "TOOLCELL_IMAGE": "host", "UV_CACHE_DIR": str(work / "uv"), **self.outside}
        self.store = work / "state/cache/packages"
        self.out: dict[str, Any] = {"when": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
                                    "kernel": os.uname().release, "cpus": os.cpu_count(), "load": os.getloadavg()}

    def all(self) -> None:
        for measure in self.first, self.warm, self.turns, self.memory:
            print(f"{measure.__name__}…", file=sys.stderr)
            measure()
        self.out["load at the end"] = os.getloadavg()

    def exec(self, code: str, **settings: str) -> Any:
        return command(self.program, "exec", "-q", "-c", code, env={**self.env, **settings})

    def serve(self, **settings: str) -> Server:
        return Server(self.program, self.work, "host", TOOLCELL_START="fork", **self.outside, **settings)

    def uv(self, code: str, *options: str, **settings: str) -> Any:
        """Runs code as toolcell's sandbox would, in the same Python, with an environment of uv's."""
        return command(self.found_uv, "run", "--no-project", "--no-config", "--no-python-downloads", "--python", self.python,
                       "--with", "pandas", *options, "python", "-c", code, env={**self.env, **settings})

    def first(self) -> None:
        """The first use of pandas, with nothing in the caches but uv, and what the machine keeps of files."""
        self.out["first import pandas, with fetching uv, s"] = round(self.exec(script("pandas", "import pandas")), 2)
        self.found_uv = next((self.store / "uv").glob("*/uv"))
        self.out["uv"] = output(self.found_uv, "--version", env=self.env)
        self.python = output(self.program, "exec", "-q", "-c", "import sys; print(sys.executable)", env=self.env)
        took: dict[str, list[float]] = {"first import pandas": [], "uv run: first import pandas": []}
        for number in range(self.rounds):
            # Folders of its own, which stay: ext4 is slow to use the inodes of files that were just deleted.
            state = self.work / f"state{number}"
            shutil.copytree(self.store / "uv", state / "cache/packages/uv")
            own = {"TOOLCELL_STATE_DIR": str(state)}
            self.exec("print(1)", **own)
            took["first import pandas"].append(self.exec(script("pandas", "import pandas"), **own))
            time.sleep(5)  # bytecode is made in the background
            took["uv run: first import pandas"].append(self.uv("import pandas", UV_CACHE_DIR=str(self.work / f"uv{number}")))
        self.keep(took)

    def warm(self) -> None:
        """Warm runs, with pandas preloaded and not, beside warm ones of uv."""
        policy = self.work / "preloading/toolcell/policy.toml"
        policy.parent.mkdir(parents=True)
        policy.write_text('[packages]\npreload = ["pandas"]\n')
        plain, preloading = self.serve(), self.serve(XDG_CONFIG_HOME=str(policy.parent.parent))
        plain.settle(script("pandas", "import pandas"))
        preloading.settle(script("pandas", "import pandas"))
        time.sleep(15)  # bytecode is made in the background
        plain.settle("print(1)")
        kinds: dict[str, Callable[[], float]] = {
            "warm print(1), no packages": lambda: plain.run("print(1)"),
            "warm print(1), with pandas": lambda: plain.run(script("pandas", "print(1)")),
            "warm import pandas": lambda: plain.run(script("pandas", "import pandas")),
            "warm import pandas, preloaded": lambda: preloading.run(script("pandas", "import pandas")),
            "uv run: print(1)": lambda: self.uv("print(1)"),
            "uv run: import pandas": lambda: self.uv("import pandas"),
            "uv run --offline: print(1)": lambda: self.uv("print(1)", "--offline"),
            "uv run --offline: import pandas": lambda: self.uv("import pandas", "--offline"),
        }
        took: dict[str, list[float]] = {name: [] for name in kinds}
        for _ in range(2):  # uv makes its bytecode
            self.uv("import pandas")
        for _ in range(10 * self.rounds):
            # In any order: after another run of the same server within a second, and after a fast one, a run is faster.
            for name in random.sample(list(kinds), len(kinds)):
                took[name].append(kinds[name]())
                time.sleep(0.2)  # a fork for the next run
        self.keep(took)
        plain.close()
        preloading.close()

    def turns(self) -> None:
        """Twenty sets in turn, more than have templates at once."""
        server = self.serve()
        first = [server.run(script(name, "print(1)")) for name in TWENTY]
        took: dict[str, list[float]] = {"20 sets in turn: first use": first, "20 sets in turn: later": []}
        for number in range(PASSES):
            for name in TWENTY:
                took["20 sets in turn: later"].append(server.run(script(name, "print(1)")))
            time.sleep(2)
            self.out[f"20 sets in turn, pass {number + 1}: processes, MB of the server and of the others, descriptors"] = [
                len(descendants(server.process.pid)), round(kilobytes(server.process.pid, "Rss") / 1024, 1),
                self.all_memory(server), len(os.listdir(f"/proc/{server.process.pid}/fd"))]
        self.keep(took)
        server.close()

    def memory(self) -> None:
        """What templates and their waiting forks hold: no page counts twice. The one without packages is always there."""
        preloading = {"XDG_CONFIG_HOME": str(self.work / "preloading")}
        kinds: dict[str, tuple[str, dict[str, str]]] = {
            "no packages": ("print(1)", {}), "pandas too": (script("pandas", "print(1)"), {}),
            "pandas too, preloaded": (script("pandas", "print(1)"), preloading)}
        for name, (code, settings) in kinds.items():
            server = self.serve(**settings)
            server.settle(code, 6)
            time.sleep(3)
            self.out[f"templates and waiting forks, {name}, MB"] = self.all_memory(server)
            server.close()

    def all_memory(self, server: Server) -> float:
        total = 0
        for pid in descendants(server.process.pid):
            try:
                total += kilobytes(pid, "Pss")
            except OSError:
                continue  # it has just ended
        return round(total / 1024, 1)

    def keep(self, took: dict[str, list[float]]) -> None:
        self.out.update({name: summary(seconds) for name, seconds in took.items()})

    def ratios(self) -> None:
        def ratio(name: str, a: str, b: str) -> None:
            self.out[name] = round(self.out[a]["p50"] / self.out[b]["p50"], 2)
        ratio("first use of pandas, toolcell / uv (at most 1.5)", "first import pandas", "uv run: first import pandas")
        ratio("warm start, uv / toolcell (at least 3)", "uv run: print(1)", "warm print(1), with pandas")
        ratio("warm start, uv --offline / toolcell", "uv run --offline: print(1)", "warm print(1), with pandas")
        ratio("warm import pandas, uv / toolcell", "uv run: import pandas", "warm import pandas")
        ratio("warm import pandas, uv --offline / toolcell", "uv run --offline: import pandas", "warm import pandas")

    def table(self) -> None:
        for name, value in self.out.items():
            if isinstance(value, dict):
                print(f"{name:50}{value['p50']:10.2f} ms{value['p95']:12.2f} ms (p95)")
            else:
                print(f"{name:50} {value}")


def main() -> None:
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    with tempfile.TemporaryDirectory(prefix="toolcell-bench-") as work:
        os.chmod(work, 0o755)
        os.mkdir(pathlib.Path(work) / "bin")
        program = str(shutil.copy(sys.argv[1], pathlib.Path(work) / "bin"))
        bench = Bench(program, pathlib.Path(work), rounds)
        try:
            bench.all()
        finally:
            subprocess.run(["chmod", "-R", "u+w", work])
    bench.ratios()
    bench.table()
    (HERE / "docs/benchmarks/packages.json").write_text(json.dumps(bench.out, indent=1) + "\n")


if __name__ == "__main__":
    main()
