"""Comments that allow a finding: on every kind of line, the file keeps its meaning and the finding is allowed."""

import ast

import pytest

from truestep.editors import edits
from truestep.lint import lint

LOOP = """\
import torch
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in batches:
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
{clip}
"""
CLIPS = {
    "plain": "    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
    "without an end of line": "    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
    "comment": "    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # at most 1",
    "several lines": "    torch.nn.utils.clip_grad_norm_(\n        model.parameters(),\n        1.0,\n    )",
    "a string over lines": '    torch.nn.utils.clip_grad_norm_(model.parameters(), """\n    """ or 1.0)',
    "a backslash": "    norm = \\\n        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
    "a comment for another rule": (
        "    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # truestep: ignore[graph-cut] on purpose"
    ),
}


@pytest.mark.parametrize("name", CLIPS)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_comment_allows_the_finding_and_changes_no_code(name, end):
    text = LOOP.format(clip=CLIPS[name]).replace("\n", end)
    if name == "without an end of line":
        text = text.rstrip("\r\n")
    (finding,) = [one for one in lint(text) if one.rule == "clip-after-step"]

    change = edits.allow(text, finding)

    assert change is not None
    assert "clip-after-step" not in {one.rule for one in lint(change.new)}
    assert ast.dump(ast.parse(change.new)) == ast.dump(ast.parse(text))
    assert len(change.new) - len(text) < 60
    assert change.new.count("truestep:") == 1
    assert ("on purpose" in change.new) == (name == "a comment for another rule")


def test_no_comment_is_offered_in_a_file_that_is_not_python():
    (finding,) = [one for one in lint(LOOP.format(clip=CLIPS["plain"])) if one.rule == "clip-after-step"]

    assert edits.allow("this is (not python\n" * 20, finding) is None
