"""Serves the packages of two versions as PyPI, the npm registry and GitHub do, on loopback.

    index.py THIS NEXT PUBLISHED CERTIFICATE

THIS and NEXT are folders with packages; those in NEXT are there as soon as the file PUBLISHED
is. Prints its address. /simple/ is PyPI's index (PEP 691), and other paths are npm's registry,
where no other packages exist. As a proxy it leads to GitHub's API, with a file of its own
CERTIFICATE and key.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import http.server
import json
import ssl
import sys
import tarfile
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote


@functools.cache
def digest(kind: str, file: Path) -> bytes:
    return hashlib.new(kind, file.read_bytes()).digest()


@functools.cache
def manifest(file: Path) -> dict[str, Any]:
    """Return the package.json of a package for npm."""
    with tarfile.open(file) as tar:
        member = tar.extractfile("package/package.json")
        assert member is not None
        found: dict[str, Any] = json.load(member)
        return found


class Index(http.server.BaseHTTPRequestHandler):
    this: Path
    next: Path
    published: Path
    tls: ssl.SSLContext

    def files(self, pattern: str) -> list[Path]:
        """Return the files that there are by now, older versions first."""
        folders = [self.this, self.next] if self.published.exists() else [self.this]
        return [file for folder in folders for file in sorted(folder.glob(pattern))]

    def do_GET(self) -> None:
        found = self.find(unquote(self.path.split("?")[0]))
        if found is None:
            self.send_error(404)
            return
        body, kind = found
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if self.path.startswith("/simple/"):
            self.send_header("Cache-Control", "max-age=600, public")  # as PyPI does: uv keeps it
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_GET

    def find(self, path: str) -> tuple[bytes, str] | None:
        """Return what is at a path, and its type."""
        if path.startswith("/files/"):
            files = [file for file in self.files("*") if file.name == Path(path).name]
            return (files[0].read_bytes(), "application/octet-stream") if files else None
        if path == "/simple/toolcell/":
            return json.dumps(self.project()).encode(), "application/vnd.pypi.simple.v1+json"
        name, latest, _ = path[1:].partition("/latest")
        github = path == "/repos/toolcell/toolcell/releases/latest"
        package = self.packument("toolcell" if github else name)
        if not package:
            return None
        newest = package["versions"][package["dist-tags"]["latest"]]
        answer = {"tag_name": "v" + newest["version"]} if github else newest if latest else package
        return json.dumps(answer).encode(), "application/json"

    def project(self) -> dict[str, Any]:
        files = [
            {"filename": w.name, "url": f"/files/{quote(w.name)}", "hashes": {"sha256": digest("sha256", w).hex()}}
            for w in self.files("*.whl")
        ]
        return {"meta": {"api-version": "1.0"}, "name": "toolcell", "files": files}

    def packument(self, name: str) -> dict[str, Any]:
        """Return what npm's registry says of a package, nothing if it is not there."""
        versions = {}
        for file in self.files("*.tgz"):
            if manifest(file)["name"] == name:
                dist = {
                    "tarball": f"http://{self.headers['Host']}/files/{quote(file.name)}",
                    "integrity": "sha512-" + base64.b64encode(digest("sha512", file)).decode(),
                }
                versions[manifest(file)["version"]] = {**manifest(file), "dist": dist}
        return {"name": name, "dist-tags": {"latest": [*versions][-1]}, "versions": versions} if versions else {}

    def do_CONNECT(self) -> None:
        """Be GitHub's API for the client of a proxy."""
        if self.path != "api.github.com:443":
            self.send_error(403)
            return
        self.send_response(200)
        self.end_headers()
        with self.tls.wrap_socket(self.request, server_side=True) as self.request:
            self.setup()
            self.handle_one_request()

    def log_message(self, format: str, *args: object) -> None:
        pass


def main() -> None:
    Index.this, Index.next, Index.published = map(Path, sys.argv[1:4])
    Index.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    Index.tls.load_cert_chain(sys.argv[4])
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Index)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


main()
