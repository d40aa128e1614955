"""Fixes keep the rest of a file: comments, line ends, tabs, several statements on a line, suppressed lines."""

import codecs

import pytest

from truestep.events import Site
from truestep.fixes import propose
from truestep.fixes.files import read

LOOP = """\
for x, y in loader:
    loss = criterion(model(x), y)  # forward
    # backward
    loss.backward()

    optimizer.step()  # update
    # clip
    clip_grad_norm_(model.parameters(), 1.0)  # at most 1
"""


def place(text, code, *, path="train.py", nth=0):
    """Return the place of a piece of code, in bytes as Python counts columns."""
    begin = -1
    for _ in range(nth + 1):
        begin = text.index(code, begin + 1)
    line = text.count("\n", 0, begin) + 1
    start = text[:begin].rpartition("\n")[2]
    column = len(start.encode())
    return Site(path, line, column, line, column + len(code.encode()))


def clip_after_step(text, clip="clip_grad_norm_(model.parameters(), 1.0)", step="optimizer.step()"):
    fix = propose(text, "clip-after-step", place(text, clip), [place(text, step)])
    return None if fix is None else fix.new


def test_comments_move_with_their_statement():
    assert clip_after_step(LOOP) == (
        "for x, y in loader:\n"
        "    loss = criterion(model(x), y)  # forward\n"
        "    # backward\n"
        "    loss.backward()\n"
        "\n"
        "    # clip\n"
        "    clip_grad_norm_(model.parameters(), 1.0)  # at most 1\n"
        "    optimizer.step()  # update\n"
    )


def test_line_ends_are_kept():
    text = LOOP.replace("\n", "\r\n")
    sites = place(LOOP, "clip_grad_norm_(model.parameters(), 1.0)"), place(LOOP, "optimizer.step()")
    fix = propose(text, "clip-after-step", sites[0], [sites[1]])
    assert fix is not None
    assert fix.new == clip_after_step(LOOP).replace("\n", "\r\n")
    assert propose(LOOP.replace("\n", "\r"), "clip-after-step", sites[0], [sites[1]]) is None


def test_tabs_are_kept():
    text = LOOP.replace("    ", "\t")
    assert clip_after_step(text) == clip_after_step(LOOP).replace("    ", "\t")


def test_statements_on_one_line():
    text = "for x in xs:\n    loss.backward(); opt.step(); clip_grad_norm_(ps, 1.0)\n"
    new = clip_after_step(text, "clip_grad_norm_(ps, 1.0)", "opt.step()")
    assert new == "for x in xs:\n    loss.backward(); clip_grad_norm_(ps, 1.0); opt.step()\n"


def test_a_loop_on_one_line():
    text = "for x in xs: loss.backward(); opt.step(); clip_grad_norm_(ps, 1.0)\n"
    new = clip_after_step(text, "clip_grad_norm_(ps, 1.0)", "opt.step()")
    assert new == "for x in xs: loss.backward(); clip_grad_norm_(ps, 1.0); opt.step()\n"


def test_a_semicolon_at_the_end_stays_where_it_is():
    text = "for x in xs:\n    loss.backward(); opt.step();\n"
    fix = propose(text, "missing-zero-grad", place(text, "opt.step()"))
    assert fix is not None
    assert fix.new == "for x in xs:\n    opt.zero_grad(); loss.backward(); opt.step();\n"


def test_a_condition_moves_with_its_only_statement():
    text = "for x in xs:\n    loss.backward()\n    opt.step()\n    if limit:\n        clip_grad_norm_(ps, limit)\n"
    new = clip_after_step(text, "clip_grad_norm_(ps, limit)", "opt.step()")
    assert (
        new == "for x in xs:\n    loss.backward()\n    if limit:\n        clip_grad_norm_(ps, limit)\n    opt.step()\n"
    )


def test_a_condition_with_an_alternative_stays():
    text = (
        "for x in xs:\n    loss.backward()\n    opt.step()\n"
        "    if limit:\n        clip_grad_norm_(ps, limit)\n    else:\n        other()\n"
    )
    new = clip_after_step(text, "clip_grad_norm_(ps, limit)", "opt.step()")
    assert new is None or "else:\n        other()" in new


def test_a_call_over_several_lines():
    text = (
        "for x in xs:\n    loss.backward()\n    opt.step()\n"
        "    clip_grad_norm_(\n        ps,  # all\n        max_norm=1.0,\n    )\n"
    )
    site = Site("train.py", 4, 4, 7, 5)
    fix = propose(text, "clip-after-step", site, [place(text, "opt.step()")])
    assert fix is not None
    assert fix.new == (
        "for x in xs:\n    loss.backward()\n"
        "    clip_grad_norm_(\n        ps,  # all\n        max_norm=1.0,\n    )\n    opt.step()\n"
    )


def test_an_argument_is_added_in_the_layout_of_the_others():
    text = "from torch.utils.data import DataLoader\nloader = DataLoader(\n    data,\n    batch_size=8,  # small\n)\n"
    fix = propose(text, "training-data-not-shuffled", Site("train.py", 2, 9, 5, 1))
    assert fix is not None
    compile(fix.new, "train.py", "exec")
    assert "    batch_size=8,  # small\n    shuffle=True,\n)" in fix.new


def test_an_argument_is_added_behind_a_backslash():
    text = "import torch\nx = torch.utils.data.DataLoader(data, \\\n    batch_size=8)\n"
    fix = propose(text, "workers-respawned", Site("train.py", 2, 4, 3, 17))
    assert fix is not None
    assert fix.new.endswith("batch_size=8, persistent_workers=True)\n")


def test_columns_are_bytes():
    text = 'for x in xs:\n    name = "größe"; loss.backward(retain_graph=True)  # é\n'
    fix = propose(text, "retain-graph-in-loop", place(text, "loss.backward(retain_graph=True)"))
    assert fix is not None
    assert fix.new == text.replace("retain_graph=True", "")


def test_a_place_without_a_column_is_found_if_it_is_the_only_one():
    text = "for x in xs:\n    logits = model.forward(x)\n"
    fix = propose(text, "forward-called-directly", Site("train.py", 2))
    assert fix is not None
    assert "logits = model(x)" in fix.new
    two = "for x in xs:\n    a.forward(x); b.forward(x)\n"
    assert propose(two, "forward-called-directly", Site("train.py", 2)) is None


def test_a_decorated_function_gets_the_decorator_last():
    text = (
        "import torch\nclass T:\n    @staticmethod\n    def evaluate(model, xs):\n"
        "        for x in xs:\n            model(x)\n"
    )
    fix = propose(text, "no-grad-missing", place(text, "model(x)"))
    assert fix is not None
    assert "    @staticmethod\n    @torch.no_grad()\n    def evaluate(" in fix.new


def test_strings_of_several_lines_keep_their_text():
    text = 'import torch\nfor x in test:\n    y = model(x)\n    log("""\n  kept\nas it is\n""")\nprint(1)\n'
    fix = propose(text, "no-grad-missing", place(text, "model(x)"))
    assert fix is not None
    assert '("""\n  kept\nas it is\n""")' in fix.new
    assert "with torch.no_grad():\n    for x in test:\n        y = model(x)\n" in fix.new


@pytest.mark.parametrize(
    "comment", ["# truestep: ignore[clip-after-step] meant", "# truestep: ignore[other-rule] meant"]
)
def test_a_line_with_a_suppression_stays(comment):
    assert clip_after_step(LOOP.replace("# at most 1", comment)) is None
    new = clip_after_step(LOOP.replace("# forward", comment))
    assert new is not None
    assert comment in new


def test_a_byte_order_mark_and_an_encoding_are_kept(tmp_path):
    file = tmp_path / "train.py"
    file.write_bytes(codecs.BOM_UTF8 + LOOP.encode())
    held = read(file)
    sites = place(LOOP, "clip_grad_norm_(model.parameters(), 1.0)"), place(LOOP, "optimizer.step()")
    fix = propose(held.text, "clip-after-step", sites[0], [sites[1]])
    held.write(fix.new)
    assert file.read_bytes() == codecs.BOM_UTF8 + clip_after_step(LOOP).encode()
    file.write_bytes("# -*- coding: latin-1 -*-\nname = 'é'\n".encode("latin-1"))
    held = read(file)
    held.write(held.text.replace("name", "other"))
    assert file.read_bytes() == "# -*- coding: latin-1 -*-\nother = 'é'\n".encode("latin-1")


@pytest.mark.parametrize("data", [b"\xff\xfe\x00", b"# coding: nothing\n", b"x" * 2_000_001])
def test_other_files_are_not_read(tmp_path, data):
    file = tmp_path / "train.py"
    file.write_bytes(data)
    assert read(file) is None
    assert read(tmp_path / "missing.py") is None


@pytest.mark.parametrize("text", ["def f(:\n", "x = (\n", "\0", "(" * 1000 + ")" * 1000, ""])
def test_a_broken_file_has_no_fix(text):
    assert propose(text, "forward-called-directly", Site("train.py", 1, 0)) is None


def test_places_outside_of_the_file_have_no_fix():
    for line, column in ((0, 0), (9, 0), (1, 99), (-1, -1)):
        assert propose("model.forward(x)\n", "forward-called-directly", Site("train.py", line, column)) is None
