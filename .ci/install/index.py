"""Serves the packages in a folder as PyPI and the npm registry do, on loopback.

    index.py DIST

Prints its address. /simple/ is PEP 503's index; everything else is npm's registry. Other
packages do not exist there.
"""

from __future__ import annotations

import base64
import hashlib
import html
import http.server
import json
import sys
import tarfile
from pathlib import Path
from urllib.parse import quote, unquote


def npm_packages(dist: Path) -> dict[str, tuple[Path, dict[str, object]]]:
    """Return the tarball and the package.json of each package for npm, by its name."""
    found = {}
    for path in dist.glob("*.tgz"):
        with tarfile.open(path) as tar:
            manifest = tar.extractfile("package/package.json")
            assert manifest is not None
            described = json.load(manifest)
            found[described["name"]] = (path, described)
    return found


class Index(http.server.BaseHTTPRequestHandler):
    dist: Path
    npm: dict[str, tuple[Path, dict[str, object]]]

    def do_GET(self) -> None:
        path = unquote(self.path.split("?")[0])
        if path == "/simple/toolcell/":
            links = "".join(
                f'<a href="/files/{quote(w.name)}#sha256={hashlib.sha256(w.read_bytes()).hexdigest()}">{html.escape(w.name)}</a>\n'
                for w in sorted(self.dist.glob("*.whl"))
            )
            self.answer(f"<!DOCTYPE html><html><body>{links}</body></html>".encode(), "text/html")
        elif path.startswith("/files/") and (self.dist / Path(path).name).is_file():
            self.answer((self.dist / Path(path).name).read_bytes(), "application/octet-stream")
        elif path[1:] in self.npm:
            self.answer(json.dumps(self.packument(path[1:])).encode(), "application/json")
        else:
            self.send_error(404)

    def packument(self, name: str) -> dict[str, object]:
        file, manifest = self.npm[name]
        integrity = "sha512-" + base64.b64encode(hashlib.sha512(file.read_bytes()).digest()).decode()
        tarball = f"http://{self.headers['Host']}/files/{quote(file.name)}"
        version = str(manifest["version"])
        dist = {"tarball": tarball, "integrity": integrity}
        return {"name": name, "dist-tags": {"latest": version}, "versions": {version: {**manifest, "dist": dist}}}

    def answer(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_GET

    def log_message(self, format: str, *args: object) -> None:
        pass


def main() -> None:
    Index.dist = Path(sys.argv[1])
    Index.npm = npm_packages(Index.dist)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Index)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


main()
