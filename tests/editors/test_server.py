"""A session of an editor over standard input and output: findings, manual pages, fixes and comments."""

import json
import os
import queue
import subprocess
import sys
import threading
from itertools import count

import pytest

pytest.importorskip("pygls")

BAD = """\
import torch

model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in batches:
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
"""
GOOD = BAD.replace("    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n", "")
RULE = "clip-after-step"
LINE = 8
"""Of the clip, from 0."""
WAIT_S = 120


class Editor:
    """A client that speaks the protocol byte by byte, as an editor does."""

    def __init__(self, folder, *arguments, encodings=("utf-16",)):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "truestep", "lsp", *arguments],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONUTF8": "1"},
        )
        self.numbers, self.messages = count(1), queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()
        general = {"positionEncodings": list(encodings)}
        self.capabilities = self.ask(
            "initialize", {"processId": None, "rootUri": folder.as_uri(), "capabilities": {"general": general}}
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

    def actions(self, path, line, only=None):
        place = {"start": {"line": line, "character": 4}, "end": {"line": line, "character": 4}}
        context = {"diagnostics": []} | ({"only": only} if only else {})
        document = {"uri": path.as_uri()}
        found = self.ask("textDocument/codeAction", {"textDocument": document, "range": place, "context": context})
        return {one["title"]: one for one in found}

    def end(self):
        self.ask("shutdown", None)
        self.tell("exit", None)
        self.process.stdin.close()
        return self.process.wait(WAIT_S)


@pytest.fixture
def editor(tmp_path):
    made = Editor(tmp_path)
    yield made
    if made.process.poll() is None:
        made.process.kill()
        made.process.wait()
    made.process.stdin.close()
    made.process.stdout.close()


def edited(text, action):
    """Return a text after the edits of an action, made from the last to the first."""
    (change,) = action["edit"]["documentChanges"]
    lines = text.splitlines(keepends=True)
    for edit in sorted(change["edits"], key=lambda one: -one["range"]["start"]["line"]):
        start, end = edit["range"]["start"], edit["range"]["end"]
        assert start["character"] == end["character"] == 0
        lines[start["line"] : end["line"]] = [edit["newText"]]
    return "".join(lines)


@pytest.mark.program
def test_a_session_from_the_first_finding_to_the_fixed_file(editor, tmp_path):
    path = tmp_path / "train.py"
    shown = editor.open(path, BAD)

    (finding,) = shown["diagnostics"]
    assert (finding["code"], finding["source"], finding["severity"]) == (RULE, "truestep", 1)
    assert finding["range"] == {"start": {"line": LINE, "character": 4}, "end": {"line": LINE, "character": 59}}
    assert finding["relatedInformation"][0]["location"]["range"]["start"]["line"] == 7
    assert shown["version"] == 1

    position = {"textDocument": {"uri": path.as_uri()}, "position": {"line": LINE, "character": 10}}
    page = editor.ask("textDocument/hover", position)["contents"]["value"]
    assert page.startswith(f"**{RULE}**")
    assert "Known false alarms" in page
    position["position"]["line"] = 0
    assert editor.ask("textDocument/hover", position) is None

    actions = editor.actions(path, LINE)
    assert f"Ignore {RULE} here" in actions
    assert editor.actions(path, 0) == {}
    fixed = edited(BAD, next(one for title, one in actions.items() if not title.startswith("Ignore")))
    assert fixed.index("clip_grad_norm_") < fixed.index("optimizer.step()")
    allowed = edited(BAD, actions[f"Ignore {RULE} here"])
    assert allowed == BAD.replace("1.0)\n", f"1.0)  # truestep: ignore[{RULE}]\n")

    for version, text in enumerate((fixed, BAD, allowed), start=2):
        editor.change(path, version, text)
        shown = editor.told("textDocument/publishDiagnostics")
        assert [one["code"] for one in shown["diagnostics"]] == ([RULE] if text == BAD else [])
        assert shown["version"] == version

    editor.tell("textDocument/didClose", {"textDocument": {"uri": path.as_uri()}})
    assert editor.told("textDocument/publishDiagnostics")["diagnostics"] == []
    assert editor.end() == 0


def test_changes_in_quick_succession_are_checked_once(editor, tmp_path):
    path = tmp_path / "train.py"
    editor.open(path, GOOD)

    for version in range(2, 12):
        editor.change(path, version, BAD if version == 11 else GOOD)
    shown = editor.told("textDocument/publishDiagnostics")

    assert shown["version"] == 11
    assert [one["code"] for one in shown["diagnostics"]] == [RULE]
    assert editor.end() == 0
    assert editor.messages.get(timeout=WAIT_S) == {"method": "the end"}


@pytest.mark.program
def test_the_configuration_is_read_when_a_file_is_saved(editor, tmp_path):
    path = tmp_path / "train.py"
    assert editor.open(path, BAD)["diagnostics"]

    def save(text):
        (tmp_path / "truestep.toml").write_text(text, encoding="utf-8")
        editor.tell("textDocument/didSave", {"textDocument": {"uri": path.as_uri()}})

    save(f'ignore = ["{RULE}"]')
    assert editor.told("textDocument/publishDiagnostics")["diagnostics"] == []
    save('exclude = ["train.py"]')
    assert editor.told("textDocument/publishDiagnostics")["diagnostics"] == []
    save("")
    assert editor.told("textDocument/publishDiagnostics")["diagnostics"]
    save("nonsense = 1")
    assert "nonsense" in editor.told("window/showMessage")["message"]
    assert editor.told("textDocument/publishDiagnostics")["diagnostics"] == []
    assert editor.end() == 0


@pytest.mark.program
def test_places_are_in_the_units_of_the_editor(editor, tmp_path):
    path = tmp_path / "train.py"
    wide = BAD.replace("    torch.nn.utils.clip", '    "𝄞é"; torch.nn.utils.clip')
    shown = editor.open(path, wide)

    assert [one["range"]["start"]["character"] for one in shown["diagnostics"]] == [11]  # 𝄞 has two units of UTF-16
    assert editor.end() == 0


@pytest.mark.program
def test_all_safe_fixes_are_made_on_request_only(editor, tmp_path):
    path = tmp_path / "train.py"
    text = BAD.replace("model(x)", "model.forward(x)")
    editor.open(path, text)

    assert not [one for one in editor.actions(path, LINE).values() if one["kind"].startswith("source")]
    every = editor.actions(path, 0, only=["source.fixAll"])
    assert [one["kind"] for one in every.values()] == ["source.fixAll.truestep"]
    assert edited(text, *every.values()) != text
    assert editor.end() == 0


@pytest.mark.program
def test_a_file_that_cannot_be_parsed_has_its_syntax_error(editor, tmp_path):
    (shown,) = editor.open(tmp_path / "train.py", "import torch\n\ndef f(:\n    torch.zeros(1)\n")["diagnostics"]

    assert shown["message"].startswith("syntax error")
    assert shown["range"]["start"]["line"] == 2
    assert editor.end() == 0
