"""A session of an editor over standard input and output: findings, manual pages, fixes and comments."""

import pytest

pytest.importorskip("pygls")

from editors import RULE, WAIT_S, Editor, edited

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
LINE = 8
"""Of the clip, from 0."""


@pytest.fixture
def editor(tmp_path):
    made = Editor(tmp_path)
    yield made
    made.close()


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

    actions = editor.actions(path.as_uri(), LINE)
    assert f"Ignore {RULE} here" in actions
    assert editor.actions(path.as_uri(), 0) == {}
    fixed = edited(BAD, next(one for title, one in actions.items() if not title.startswith("Ignore")), path.as_uri())
    assert fixed.index("clip_grad_norm_") < fixed.index("optimizer.step()")
    allowed = edited(BAD, actions[f"Ignore {RULE} here"], path.as_uri())
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

    assert not [one for one in editor.actions(path.as_uri(), LINE).values() if one["kind"].startswith("source")]
    every = editor.actions(path.as_uri(), 0, only=["source.fixAll"])
    assert [one["kind"] for one in every.values()] == ["source.fixAll.truestep"]
    assert edited(text, *every.values(), path.as_uri()) != text
    assert editor.end() == 0


@pytest.mark.program
def test_a_file_that_cannot_be_parsed_has_its_syntax_error(editor, tmp_path):
    (shown,) = editor.open(tmp_path / "train.py", "import torch\n\ndef f(:\n    torch.zeros(1)\n")["diagnostics"]

    assert shown["message"].startswith("syntax error")
    assert shown["range"]["start"]["line"] == 2
    assert editor.end() == 0
