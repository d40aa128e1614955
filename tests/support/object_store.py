"""An object store: a server process that keeps objects in memory, and its fsspec file system.

    with served() as url:            # objects://127.0.0.1:40001
        Storage(f"{url}/bucket/run")

As in S3, folders do not exist, an object is visible as a whole or not at all, a listing is complete, and a removal of
a missing object succeeds. Listings are in the order that is worst for removals, manifests last. The only bucket is
named "bucket".
"""

import contextlib
import http.client
import json
import os
import signal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote, unquote

import fsspec
from fsspec import AbstractFileSystem

BUCKET = "bucket"


class Handler(BaseHTTPRequestHandler):
    objects: dict[str, bytes] = {}

    def do_PUT(self):
        size = int(self.headers["Content-Length"])
        content = self.rfile.read(size)
        if len(content) < size:
            return  # the client died: nothing is stored
        if self.key.partition("/")[0] != BUCKET:
            self.answer(404)
            return
        self.objects[self.key] = content
        self.answer(200)

    def do_GET(self):
        if self.key.startswith("?"):
            held = dict(self.objects)
            found = {key: len(content) for key, content in held.items() if key.startswith(self.key[1:])}
            self.answer(200, json.dumps(dict(sorted(found.items(), reverse=True))).encode())
        else:
            content = self.objects.get(self.key)
            self.answer(404 if content is None else 200, content or b"")

    def do_DELETE(self):
        self.objects.pop(self.key, None)
        self.answer(200)

    @property
    def key(self):
        return unquote(self.path[1:])

    def answer(self, status, content=b""):
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments):
        pass


class ObjectFileSystem(AbstractFileSystem):
    """The client. `before` is called with the method and the key of each request."""

    protocol = "objects"
    cachable = False
    before = staticmethod(lambda method, key: None)

    @classmethod
    def _strip_protocol(cls, path):
        if isinstance(path, list):
            return [cls._strip_protocol(one) for one in path]
        return path.removeprefix("objects://").rstrip("/")

    def request(self, method, path, content=None):
        host, _, key = self._strip_protocol(path).partition("/")
        return self._request(method, host, key, content)

    def _request(self, method, host, key, content=None):
        type(self).before(method, key)
        with contextlib.closing(http.client.HTTPConnection(host, timeout=60)) as connection:
            connection.request(method, "/" + quote(key), content)
            with connection.getresponse() as answer:
                received = answer.read()
            if answer.status == 404:
                raise FileNotFoundError(key)
            return received

    def find(self, path, maxdepth=None, withdirs=False, detail=False, **options):
        host, _, key = self._strip_protocol(path).partition("/")
        found = json.loads(self._request("GET", host, f"?{key}/"))
        entries = {
            f"{host}/{name}": {"name": f"{host}/{name}", "size": size, "type": "file"} for name, size in found.items()
        }
        return entries if detail else list(entries)

    def put_file(self, lpath, rpath, **options):
        self.request("PUT", rpath, Path(lpath).read_bytes())

    def get_file(self, rpath, lpath, **options):
        Path(lpath).write_bytes(self.request("GET", rpath))

    def cat_file(self, path, **options):
        return self.request("GET", path)

    def rm_file(self, path):
        self.request("DELETE", path)

    def rm(self, path, recursive=False, maxdepth=None):
        for one in self.find(path) if recursive else [path]:
            self.rm_file(one)


fsspec.register_implementation("objects", ObjectFileSystem, clobber=True)


@contextlib.contextmanager
def served():
    """Start a server; give the URL of it."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    child = os.fork()
    if not child:
        try:
            server.serve_forever()
        finally:
            os._exit(1)
    try:
        yield f"objects://127.0.0.1:{server.server_port}"
    finally:
        server.server_close()
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
