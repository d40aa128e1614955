"""Notebooks: cells in order, places in cells, and lines of IPython left out."""

import json

import pytest

from truestep.findings import Confidence
from truestep.lint.checking import check
from truestep.lint.engine import code_of, inspecting
from truestep.lint.notebooks import notebook_of
from truestep.lint.results import Problem
from truestep.lint.texts import document, render

RULES = tuple(inspecting().values())


def notebook(*cells, **metadata):
    listed = [{"cell_type": "markdown", "source": ["# Title"], "metadata": {}}]
    listed += [
        {"cell_type": "code", "source": cell.splitlines(keepends=True), "metadata": {}, "outputs": []} for cell in cells
    ]
    return json.dumps({"cells": listed, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5})


CELLS = (
    "%load_ext truestep\nimport torch\n!pip install torch\nfrom torch import nn",
    "model = nn.Linear(1, 1)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\nmodel?",
    "%%time\nfor x, y in loader:\n    optimizer.zero_grad()\n    model(x).sum().backward()\n"
    "    optimizer.step()\n    nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
)


def test_place_is_the_line_in_the_cell():
    (one,) = check([code_of("a.ipynb", notebook(*CELLS))], RULES).shown()
    assert one.rule == "clip-after-step"
    assert (one.primary.site.path, one.primary.site.line) == ("a.ipynb:cell 4", 6)


def test_report_shows_the_lines_of_the_cell():
    results = check([code_of("a.ipynb", notebook(*CELLS))], RULES)
    text = render(results, "text", Confidence.MEDIUM, width=80)
    assert "--> a.ipynb:cell 4:6:5" in text
    assert "6 |     nn.utils.clip_grad_norm_(model.parameters(), 1.0)" in text
    assert document(results, Confidence.MEDIUM)["findings"][0]["primary"]["site"]["path"] == "a.ipynb:cell 4"


def test_sarif_and_github_name_the_notebook():
    results = check([code_of("a.ipynb", notebook(*CELLS))], RULES)
    log = json.loads(render(results, "sarif", Confidence.MEDIUM))
    (result,) = log["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "a.ipynb"
    assert result["message"]["text"].endswith("(cell 4, line 6)")
    github = render(results, "github", Confidence.MEDIUM)
    assert "file=a.ipynb,title" in github
    assert f"::cell 4, line 6: {results.shown()[0].message}" in github
    assert github.splitlines()[-1] == "1 failure found in 1 file"


def test_comment_in_a_cell_allows_the_finding_there():
    cells = (*CELLS[:2], CELLS[2] + "  # truestep: ignore[clip-after-step] on purpose")
    results = check([code_of("a.ipynb", notebook(*cells))], RULES)
    assert results.shown() == ()
    assert [one.suppressed for one in results.findings] == [True]


@pytest.mark.parametrize(
    "cell", ["%%bash\necho torch", "%%html\n<b>torch</b>", "def f(:", "x = !ls torch\n", "files = %sx ls\n"]
)
def test_cell_that_is_not_python_is_left_out(cell):
    results = check([code_of("a.ipynb", notebook(CELLS[0], cell, *CELLS[1:]))], RULES)
    assert [one.rule for one in results.shown()] == ["clip-after-step"]
    assert results.shown()[0].primary.site.path == "a.ipynb:cell 5"


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"cells": [{}]}', '{"cells": 1}', "null", "[" * 5000])
def test_other_json_is_a_problem(text):
    problem = notebook_of("a.ipynb", text)
    assert isinstance(problem, Problem)
    assert "not a notebook of format 4" in str(problem)


def test_notebook_of_another_language_has_no_code():
    found = notebook_of("a.ipynb", notebook("import torch", kernelspec={"language": "R"}))
    assert found.text == "\n"
