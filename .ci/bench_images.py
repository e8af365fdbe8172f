#!/usr/bin/env python3
"""Times a first pull of the data-science image beside podman, and skopeo with umoci. `make bench-images` calls this.

    bench_images.py TOOLCELL LAYOUT [ROUNDS]      # as root

Everything comes from one loopback registry, in turn, ROUNDS times (3); medians count. `tar` is the floor: it only
decompresses and writes the same layers, one after the other. What is measured is kept in docs/benchmarks/images.json.

All of it happens in a file system made for it, and nothing is deleted before the end (20 GB for 3 rounds): ext4 is slow
to use the inodes of files that were deleted in the last minutes (up to twenty times), and the next writer pays for it.
"""
from __future__ import annotations

import contextlib
import datetime
import json
import os
import pathlib
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from typing import Any

LIMIT = 900  # seconds for one command


def run(*command: Any, env: dict[str, str] | None = None) -> Any:
    """Runs a command and returns the seconds it took and the most memory it had, in MB."""
    start = time.perf_counter()
    process: Any = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               env={**os.environ, **(env or {})})
    watchdog = threading.Timer(LIMIT, process.kill)
    watchdog.start()
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    took = time.perf_counter() - start
    watchdog.cancel()
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit {process.returncode}\n{output.decode()}")
    return took, usage.ru_maxrss / 1024


def free_port() -> Any:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Registry:
    """Debian's docker-registry on a loopback port, with one image."""

    def __init__(self, work: Any, layout: Any) -> None:
        self.ref = f"127.0.0.1:{free_port()}/data:1"
        config = work / "registry.yml"
        config.write_text(json.dumps({
            "version": "0.1", "log": {"level": "error", "accesslog": {"disabled": True}},
            "storage": {"filesystem": {"rootdirectory": str(work / "registry")}},
            "http": {"addr": self.ref.split("/")[0]},
        }))
        self.process = subprocess.Popen(["docker-registry", "serve", str(config)], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        for _ in range(100):
            try:
                urllib.request.urlopen(f"http://{self.ref.split('/')[0]}/v2/", timeout=1)
                break
            except OSError:
                time.sleep(0.1)
        run("skopeo", "copy", "--quiet", "--dest-tls-verify=false", f"oci:{layout}", f"docker://{self.ref}")

    def close(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def with_toolcell(work: Any, toolcell: str, registry: Any) -> Any:
    env = {"TOOLCELL_STATE_DIR": str(work / "toolcell")}
    result = run(toolcell, "images", "pull", "--no-compile", registry.ref, env=env)
    again = [run(toolcell, "images", "pull", "--no-compile", registry.ref, env=env)[0] for _ in range(3)]
    return {"toolcell": result, "toolcell, again": (min(again), 0)}


def with_podman(work: Any, registry: Any) -> Any:
    store = ["--root", str(work / "podman"), "--runroot", str(work / "run")]
    result = run("podman", *store, "pull", "--quiet", "--tls-verify=false", registry.ref)
    subprocess.run(["umount", "--lazy", str(work / "podman" / "overlay")], capture_output=True)
    return {"podman pull": result}


def with_umoci(work: Any, registry: Any) -> Any:
    layout = work / "umoci-layout"
    copied = run("skopeo", "copy", "--quiet", "--src-tls-verify=false", f"docker://{registry.ref}", f"oci:{layout}:1")
    unpacked = run("umoci", "unpack", "--rootless", "--image", f"{layout}:1", str(work / "bundle"))
    return {"skopeo + umoci": (copied[0] + unpacked[0], max(copied[1], unpacked[1]))}


def with_tar(work: Any, layout: Any) -> Any:
    index = json.loads((layout / "index.json").read_text())
    def blob(descriptor: Any) -> Any:
        return layout / "blobs" / descriptor["digest"].replace(":", "/")

    manifest = json.loads(blob(index["manifests"][0]).read_text())
    took = 0
    for number, layer in enumerate(manifest["layers"]):
        into = work / f"tar{number}"
        into.mkdir()
        took += run("tar", "-C", str(into), "-xzf", str(blob(layer)))[0]
    return {"tar -xz": (took, 0)}


def import_times(module: str, places: Any, env: dict[str, str]) -> Any:
    """Returns the best of fifteen times, in ms, that an import takes in a fresh process, in each place in turn."""
    code = f"import time; t = time.perf_counter(); import {module}; print((time.perf_counter() - t) * 1000)"
    best: dict[str, float] = {}
    for _ in range(15):
        for name, python in places.items():
            took = float(subprocess.run([*python, "-c", code], env={**os.environ, **env}, check=True,
                                        capture_output=True).stdout)
            best[name] = min(took, best.get(name, took))
    return best


def compare_imports(work: Any, toolcell: str, layout: Any) -> Any:
    """Compiles the image, which has no bytecode; returns how long that took, and the times of imports.

    The host has other versions of Python and pandas than the image: the fair peer is the image's own tree, once it is
    compiled, run by the host's kernel without a sandbox.
    """
    env = {"TOOLCELL_STATE_DIR": str(work / "imports"), "TOOLCELL_IMAGE": f"oci:{layout}", "TOOLCELL_TIMEOUT": "60s"}
    run(toolcell, "images", "pull", "--no-compile", f"oci:{layout}", env=env)
    seconds, _ = run(toolcell, "images", "pull", f"oci:{layout}", env=env)
    listed = subprocess.run([toolcell, "images", "inspect", f"oci:{layout}"], env={**os.environ, **env}, check=True,
                            capture_output=True, text=True)
    image = json.loads(listed.stdout)[0]
    places = {"in a sandbox": (toolcell, "exec"), "the same files without one": ("chroot", image["dir"], "python3", "-s", "-B"),
              "the host's own": ("/usr/bin/python3", "-s", "-B")}
    return seconds, {module: import_times(module, places, env) for module in ("asyncio", "pandas")}


@contextlib.contextmanager
def fresh_folder() -> Any:
    """Gives a folder in a file system of its own."""
    with tempfile.TemporaryDirectory(prefix="rcbench-", ignore_cleanup_errors=True) as top:
        disk, folder = pathlib.Path(top, "disk"), pathlib.Path(top, "fs")
        folder.mkdir()
        run("truncate", "--size=40G", str(disk))
        run("mkfs.ext4", "-q", str(disk))
        run("mount", "-o", "loop", str(disk), str(folder))
        try:
            yield folder
        finally:
            run("umount", "--lazy", str(folder))


def main() -> None:
    if len(sys.argv) not in (3, 4):
        raise SystemExit(__doc__)
    toolcell, layout = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
    rounds = int(sys.argv[3]) if len(sys.argv) == 4 else 3
    found: dict[str, Any] = {}
    with fresh_folder() as top:
        compiling, imports = compare_imports(top, toolcell, layout)
        registry = Registry(top, layout)
        try:
            for _ in range(rounds):
                work = pathlib.Path(tempfile.mkdtemp(prefix="r", dir=top))
                for results in (with_toolcell(work, toolcell, registry), with_podman(work, registry),
                                with_umoci(work, registry), with_tar(work, layout)):
                    for name, result in results.items():
                        found.setdefault(name, []).append(result)
        finally:
            registry.close()
    size = sum(f.stat().st_size for f in layout.glob("blobs/sha256/*"))
    print(f"first pull of {size / 1e6:.0f} MB compressed, median of {rounds}; {os.cpu_count()} processors")
    own = statistics.median(took for took, _ in found["toolcell"])
    print(f"{'':16} {'seconds':>8} {'of ours':>8} {'MB':>6}")
    for name, results in found.items():
        took, memory = statistics.median(t for t, _ in results), max(m for _, m in results)
        print(f"{name:16} {took:8.3f} {took / own:8.2f} {f'{memory:.0f}' if memory else '':>6}")
    print(f"\ncompiling all modules took {compiling:.1f} s; then, best of 15, in ms:")
    for module, places in imports.items():
        print(f"import {module:9}" + "".join(f"   {name} {took:.0f}" for name, took in places.items()))
    kept = pathlib.Path(__file__).resolve().parent.parent / "docs" / "benchmarks" / "images.json"
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps({
        "date": datetime.date.today().isoformat(), "processors": os.cpu_count(), "compressed_bytes": size,
        "kernel": os.uname().release, "seconds_and_megabytes": found,
        "compile_seconds": compiling, "import_milliseconds": imports,
    }, indent=1) + "\n")


if __name__ == "__main__":
    main()
