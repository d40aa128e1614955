"""Fixes in notebooks: the sources of cells change, and no other character of the file."""

import io
import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

import truestep.lint
from truestep import source
from truestep.cli import main
from truestep.lint.cell_sources import with_sources

STEPS = (
    "for x, y in loader:\n    optimizer.zero_grad()\n    loss = criterion(model(x), y)\n    loss.backward()\n"
    "    optimizer.step()\n    nn.utils.clip_grad_norm_(model.parameters(), 1.0)"
)
FIXED = (
    "for x, y in loader:\n    optimizer.zero_grad()\n    loss = criterion(model(x), y)\n    loss.backward()\n"
    "    nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n    optimizer.step()"
)
MODEL = (
    "model = nn.Sequential(nn.Linear(4, 3))\ncriterion = nn.CrossEntropyLoss()\n"
    "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)"
)
CELLS = (
    "%matplotlib inline\nimport torch\n!pip install x\nfrom torch import nn  # é",
    MODEL,
    "%%bash\nls | wc",
    f"%%time\nfiles = !ls\n{STEPS}",
    "model?",
)


def document(*cells):
    listed = [{"cell_type": "markdown", "metadata": {}, "source": ["# Title é\n", "text"]}]
    for number, cell in enumerate(cells):
        picture = {"data": {"image/png": "iVBOR\n", "text/plain": ["1.50"]}, "execution_count": number}
        listed.append(
            {
                "cell_type": "code", "execution_count": number, "id": f"c{number}",
                "metadata": {"tags": []}, "outputs": [picture], "source": cell.splitlines(keepends=True),
            }
        )  # fmt: skip
    return {"cells": listed, "metadata": {"a": 1.0}, "nbformat": 4, "nbformat_minor": 5}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(source, "_overlays", {})
    return tmp_path


def lint(*arguments):
    with pytest.raises(SystemExit) as ended:
        main(["lint", "--no-cache", *arguments])
    return ended.value.code


FORMS = {
    "jupyter": lambda held: json.dumps(held, indent=1, ensure_ascii=False) + "\n",
    "four spaces": lambda held: json.dumps(held, indent=4, ensure_ascii=False),
    "tabs": lambda held: json.dumps(held, indent="\t"),
    "one line": lambda held: json.dumps(held),
    "compact": lambda held: json.dumps(held, separators=(",", ":"), ensure_ascii=False),
    "windows": lambda held: (json.dumps(held, indent=1, ensure_ascii=False) + "\n").replace("\n", "\r\n"),
    "mark": lambda held: "\ufeff" + json.dumps(held, indent=1),
    "strings": lambda held: json.dumps(
        {**held, "cells": [{**cell, "source": "".join(cell["source"])} for cell in held["cells"]]}, indent=2
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_only_the_source_of_the_cell_changes(folder, capsys, form):
    fixed = (*CELLS[:3], f"%%time\nfiles = !ls\n{FIXED}", CELLS[4])
    (folder / "lab.ipynb").write_bytes(FORMS[form](document(*CELLS)).encode())
    assert lint("--fix") == 0
    assert (folder / "lab.ipynb").read_bytes().decode() == FORMS[form](document(*fixed))
    assert capsys.readouterr().err == "truestep: made 1 fix in lab.ipynb\n"
    assert lint("--fix") == 0
    assert (folder / "lab.ipynb").read_bytes().decode() == FORMS[form](document(*fixed))


def test_a_diff_of_the_json_can_be_applied(folder, capsys):
    text = FORMS["jupyter"](document(*CELLS))
    (folder / "lab.ipynb").write_bytes(text.encode())
    assert lint("--diff") == 1
    shown = capsys.readouterr().out
    assert (folder / "lab.ipynb").read_bytes().decode() == text
    assert '+    "    nn.utils.clip_grad_norm_(model.parameters(), 1.0)\\n",\n' in shown
    subprocess.run(["git", "apply", "-"], input=shown.encode(), cwd=folder, check=True)
    assert FIXED in "".join(json.loads((folder / "lab.ipynb").read_bytes())["cells"][4]["source"])


def test_fixes_to_be_reviewed_are_counted_and_made(folder, capsys):
    cells = (CELLS[0], MODEL.replace("3))", "3), nn.Softmax(dim=1))"), STEPS)
    (folder / "lab.ipynb").write_bytes(FORMS["jupyter"](document(*cells)).encode())
    assert lint("--fix") == 1
    assert capsys.readouterr().err == "truestep: made 1 fix in lab.ipynb, 1 more to be reviewed, with --unsafe-fixes\n"
    assert lint("--fix", "--unsafe-fixes") == 0
    written = (folder / "lab.ipynb").read_bytes().decode()
    assert written == FORMS["jupyter"](document(CELLS[0], MODEL, FIXED))


def test_json_has_the_fix_with_its_cell_and_lines(folder, capsys):
    (folder / "lab.ipynb").write_bytes(FORMS["jupyter"](document(*CELLS)).encode())
    assert lint("--format", "json") == 1
    report = json.loads(capsys.readouterr().out)
    jsonschema.validate(report, json.loads((Path(truestep.lint.__file__).parent / "lint.schema.json").read_bytes()))
    (finding,) = report["findings"]
    assert finding["primary"]["site"]["path"] == "lab.ipynb:cell 5"
    lines = CELLS[3].split("\n")
    assert {edit["cell"] for edit in finding["fix"]["edits"]} == {5}
    for edit in sorted(finding["fix"]["edits"], key=lambda one: -one["line"]):
        lines[edit["line"] - 1 : edit["line"] - 1 + edit["lines"]] = edit["text"].splitlines()
    assert "\n".join(lines) == f"%%time\nfiles = !ls\n{FIXED}"
    assert finding["fix"]["safe"]
    assert finding["fix"]["diff"].startswith("--- a/lab.ipynb:cell 5\n+++ b/lab.ipynb:cell 5\n")


@pytest.mark.parametrize("form", FORMS)
def test_sarif_has_the_fix_in_the_lines_of_the_file(folder, capsys, form):
    text = FORMS[form](document(*CELLS))
    (folder / "lab.ipynb").write_bytes(text.encode())
    assert lint("--format", "sarif") == 1
    (result,) = json.loads(capsys.readouterr().out)["runs"][0]["results"]
    (change,) = result["fixes"][0]["artifactChanges"]
    assert change["artifactLocation"]["uri"] == "lab.ipynb"
    lines = text.splitlines(keepends=True)
    for one in reversed(change["replacements"]):
        region = one["deletedRegion"]
        assert region["startColumn"] == region["endColumn"] == 1
        lines[region["startLine"] - 1 : region["endLine"] - 1] = [one["insertedContent"]["text"]]
    assert "".join(lines) == FORMS[form](document(*CELLS[:3], f"%%time\nfiles = !ls\n{FIXED}", CELLS[4]))


def test_a_cell_that_is_not_in_the_file_has_no_fix(folder, capsys, monkeypatch):
    (folder / "lab.ipynb").write_bytes(FORMS["jupyter"](document(*CELLS[:2], STEPS.replace("1.0", "9.0"))).encode())
    given = FORMS["jupyter"](document(*CELLS[:2], STEPS))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given.encode())))
    assert lint("--format", "json", "--stdin-filename", "lab.ipynb", "-") == 1
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert finding["fix"] is None


KEPT = """\
best = 0.0
for _ in range(9):
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
    if accuracy(model) > best:
        best = accuracy(model)
        state = model.state_dict()
model.load_state_dict(state)"""


def test_an_import_goes_to_the_imports_of_the_first_cell(folder):
    cells = ("%%bash\nls", "# a note", *CELLS[:2], KEPT)
    (folder / "lab.ipynb").write_bytes(FORMS["jupyter"](document(*cells)).encode())
    assert lint("--fix") == 0
    new = ["".join(cell["source"]) for cell in json.loads((folder / "lab.ipynb").read_bytes())["cells"][1:]]
    assert new[0] == cells[0]
    assert sum("import copy" in cell for cell in new) == 1
    assert "copy.deepcopy(model.state_dict())" in new[4]
    assert "%matplotlib inline" in new[2]
    assert "!pip install x" in new[2]


def test_an_import_is_not_made_after_its_use(folder):
    imports = "from torch import nn\nfrom torch.optim import SGD"
    made = "model = nn.Linear(4, 3)\ncriterion = nn.CrossEntropyLoss()\noptimizer = SGD(model.parameters(), lr=0.1)"
    text = FORMS["jupyter"](document(imports, made, KEPT, "import numpy"))
    (folder / "lab.ipynb").write_bytes(text.encode())
    assert lint("--fix") == 1
    assert (folder / "lab.ipynb").read_bytes().decode() == text


def test_findings_that_a_comment_allows_are_kept(folder):
    cells = (*CELLS[:2], STEPS + "  # truestep: ignore[clip-after-step] on purpose")
    text = FORMS["jupyter"](document(*cells))
    (folder / "lab.ipynb").write_bytes(text.encode())
    assert lint("--fix") == 0
    assert (folder / "lab.ipynb").read_bytes().decode() == text


def test_standard_input_can_be_a_notebook(folder, capsysbinary, monkeypatch):
    text = FORMS["jupyter"](document(*CELLS[:2], STEPS))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert lint("--fix", "--stdin-filename", "lab.ipynb", "-") == 0
    assert capsysbinary.readouterr().out.decode() == FORMS["jupyter"](document(*CELLS[:2], FIXED))


def test_sources_keep_the_characters_of_equal_lines():
    text = '{"cells": [{"source": [ "\\u0061\\n" ,"b" ]}], "x": 1e3}'
    assert with_sources(text, {0: "a\nc\nb"}) == '{"cells": [{"source": [ "\\u0061\\n" ,"c\\n" ,"b" ]}], "x": 1e3}'
    assert with_sources(text, {}) == text
    uneven = '{"cells": [{"source": ["a\\n",  "b\\n",\n "c"]}]}'
    assert with_sources(uneven, {0: "a\nb\nc"}) == uneven
    assert with_sources(uneven, {0: "b\nc"}) == '{"cells": [{"source": ["b\\n",\n "c"]}]}'
