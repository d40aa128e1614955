"""A client that speaks the protocol of editors with `truestep lsp`."""

import json
import os
import queue
import subprocess
import sys
import threading
from itertools import count

RULE = "clip-after-step"
WAIT_S = 120


class Editor:
    """A client that speaks the protocol byte by byte, as an editor does."""

    def __init__(self, folder, *arguments, encodings=("utf-16",), notebooks=False):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "truestep", "lsp", *arguments],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONUTF8": "1"},
        )
        self.numbers, self.messages = count(1), queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()
        known = {"general": {"positionEncodings": list(encodings)}}
        if notebooks:
            known["notebookDocument"] = {"synchronization": {"dynamicRegistration": False}}
        self.capabilities = self.ask(
            "initialize", {"processId": None, "rootUri": folder.as_uri(), "capabilities": known}
        )["capabilities"]
        self.tell("initialized", {})

    def _listen(self):
        while True:
            length = 0
            while line := self.process.stdout.readline().strip():
                name, _, value = line.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
            if not length:
                self.messages.put({"method": "the end"})
                return
            self.messages.put(json.loads(self.process.stdout.read(length)))

    def _next(self):
        message = self.messages.get(timeout=WAIT_S)
        assert message.get("method") != "the end", "the server has ended"
        return message

    def _send(self, message):
        body = json.dumps({"jsonrpc": "2.0"} | message).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def tell(self, method, params):
        self._send({"method": method, "params": params})

    def ask(self, method, params):
        number = next(self.numbers)
        self._send({"id": number, "method": method, "params": params})
        while True:
            message = self._next()
            if message.get("id") == number:
                assert "error" not in message, message
                return message["result"]

    def told(self, method):
        while True:
            message = self._next()
            if message.get("method") == method:
                return message["params"]

    def open(self, path, text):
        document = {"uri": path.as_uri(), "languageId": "python", "version": 1, "text": text}
        self.tell("textDocument/didOpen", {"textDocument": document})
        return self.told("textDocument/publishDiagnostics")

    def change(self, path, version, text):
        document = {"uri": path.as_uri(), "version": version}
        self.tell("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]})

    def actions(self, uri, line, only=None):
        place = {"start": {"line": line, "character": 4}, "end": {"line": line, "character": 4}}
        context = {"diagnostics": []} | ({"only": only} if only else {})
        document = {"uri": uri}
        found = self.ask("textDocument/codeAction", {"textDocument": document, "range": place, "context": context})
        return {one["title"]: one for one in found}

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def end(self):
        self.ask("shutdown", None)
        self.tell("exit", None)
        self.process.stdin.close()
        return self.process.wait(WAIT_S)


def edited(text, action, uri):
    """Return the text of a document after the edits of an action, made from the last to the first."""
    (change,) = action["edit"]["documentChanges"]
    assert change["textDocument"]["uri"] == uri
    lines = text.splitlines(keepends=True)
    for edit in sorted(change["edits"], key=lambda one: -one["range"]["start"]["line"]):
        start, end = edit["range"]["start"], edit["range"]["end"]
        assert start["character"] == end["character"] == 0
        lines[start["line"] : end["line"]] = [edit["newText"]]
    return "".join(lines)
