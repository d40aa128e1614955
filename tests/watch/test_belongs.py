"""Findings point at the line where their remedy belongs, and at none if the file does not show a certain one."""

import ast
from dataclasses import replace

import pytest

from truestep.events import Site
from truestep.findings import Confidence, Finding, Mark, Severity
from truestep.fixes import Wanted
from truestep.supervision.belongs import placed

HEAD = "import torch\nfrom torch import nn\nfrom torch.utils.data import DataLoader\n"
MADE = "model = nn.Linear(4, 3)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
STEPS = """\
{a}for x, y in DataLoader(data):
{a}    optimizer.zero_grad()
{a}    nn.functional.cross_entropy(model(x), y).backward()
{a}    optimizer.step()
"""
INNER = STEPS.format(a="    ")
EVALUATION = """\
    model.eval()
    with torch.no_grad():
        for rows in DataLoader(val):
            right = model(rows)
"""
FUNCTION = """\
def evaluate(model, val):
    model.eval()
    with torch.no_grad():
        return [model(rows) for rows in DataLoader(val)]
"""
TRAIN = "call `model.train()` after the evaluation, at the start of the next training epoch"
EVAL = "call `model.eval()` before the evaluation and `model.train()` after it"
COSINE = "schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max={})\n"
NEVER = "call `schedule.step()` in the loop, in the unit that its length counts"
WARMUP = "schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: step / 9)\n"
EVERY = "call `schedule.step()` after every `optimizer.step()`"
ONCE = "call `schedule.step()` once per epoch, after the loop over batches"
SAMPLED = "sampler = torch.utils.data.DistributedSampler(data)\nloader = DataLoader(data, sampler=sampler)\n"
PLACES = {
    "train mode before the loop over batches": (
        "train-mode-not-restored", f"{MADE}for epoch in range(9):\n{INNER}{EVALUATION}", "model(x)", TRAIN,
        ("model.eval()",), "for x, y in DataLoader(data)", "`model.train()` belongs before this loop",
    ),
    "train mode in the loop that evaluates": (
        "train-mode-not-restored",
        f"{FUNCTION}{MADE}for epoch in range(9):\n    for x, y in DataLoader(data):\n        loss = model(x).sum()\n"
        "        loss.backward()\n        optimizer.step()\n        evaluate(model, val)\n",
        "model(x)", TRAIN, ("model.eval()",), None, "",
    ),
    "eval mode before the loop": (
        "eval-mode-missing", f"{MADE}for epoch in range(9):\n{INNER}{EVALUATION}", "model(rows)", EVAL, (),
        "for rows in DataLoader(val)", "`model.eval()` belongs before this loop",
    ),
    "gradients off around the loop": (
        "no-grad-missing",
        f"{MADE}for epoch in range(9):\n{INNER}    for rows in DataLoader(val):\n        model(rows)\n",
        "model(rows)", "wrap the evaluation in `with torch.no_grad():`", (), "for rows in DataLoader(val)",
        "this loop belongs in `with torch.no_grad():`",
    ),
    "a schedule as long as the epochs": (
        "scheduler-never-stepped", f"{MADE}{COSINE.format('epochs')}for epoch in range(epochs):\n{INNER}",
        COSINE.format("epochs")[11:-1], NEVER, (), "for x, y in DataLoader(data)",
        "`schedule.step()` belongs after this loop",
    ),
    "a schedule of another length": (
        "scheduler-never-stepped", f"{MADE}{COSINE.format('total')}for epoch in range(epochs):\n{INNER}",
        COSINE.format("total")[11:-1], NEVER, (), None, "",
    ),
    "a warmup after each step": (
        "learning-rate-dead", f"{MADE}{WARMUP}for epoch in range(9):\n{INNER}", WARMUP[11:-1], EVERY, (),
        "optimizer.step()", "`schedule.step()` belongs after this line",
    ),
    "a warmup of one of two steps": (
        "learning-rate-dead", f"{MADE}{WARMUP}for epoch in range(9):\n{INNER}{INNER}", WARMUP[11:-1], EVERY,
        (), None, "",
    ),
    "a schedule that is stepped before the loop": (
        "scheduler-before-optimizer", f"{MADE}for epoch in range(9):\n    schedule.step()\n{INNER}", "schedule.step()",
        "call `schedule.step()` after `optimizer.step()`", ("optimizer.step()",), "for x, y in DataLoader(data)",
        "`schedule.step()` belongs after this loop",
    ),
    "a schedule that is stepped for each batch": (
        "scheduler-wrong-cadence", f"{MADE}for epoch in range(9):\n{INNER}        schedule.step()\n", "schedule.step()",
        ONCE, (), "for x, y in DataLoader(data)", "`schedule.step()` belongs after this loop",
    ),
    "an optimizer of each epoch": (
        "optimizer-rebuilt", f"model = nn.Linear(4, 3)\nfor epoch in range(9):\n    {MADE.splitlines()[1]}\n{INNER}",
        MADE.splitlines()[1][12:], "build `optimizer` once, before the loops", (), "for epoch in range(9)",
        f"`{MADE.splitlines()[1]}` belongs before this loop",
    ),
    "an optimizer of each model": (
        "optimizer-rebuilt",
        f"for fold in range(9):\n    {MADE.splitlines()[0]}\n    {MADE.splitlines()[1]}\n{INNER}",
        MADE.splitlines()[1][12:], "build `optimizer` once, before the loops", (), None, "",
    ),
    "the epoch of a sampler": (
        "sampler-epoch-not-set",
        f"{MADE}{SAMPLED}for epoch in range(9):\n{INNER.replace('DataLoader(data)', 'loader')}",
        "DataLoader(data, sampler=sampler)", "call `sampler.set_epoch(epoch)` on the sampler before each pass", (),
        "for x, y in loader", "`sampler.set_epoch(epoch)` belongs before this loop",
    ),
    "a sampler without a count of epochs": (
        "sampler-epoch-not-set", f"{MADE}{SAMPLED}while True:\n{INNER.replace('DataLoader(data)', 'loader')}",
        "DataLoader(data, sampler=sampler)",
        "call `sampler.set_epoch(epoch)` on the sampler before each pass", (), None,
        "",
    ),
    "the last window": (
        "accumulation-window-dropped",
        f"{MADE}for epoch in range(9):\n    for i, (x, y) in enumerate(DataLoader(data)):\n"
        "        model(x).sum().backward()\n"
        "        if i % 4 == 3:\n            optimizer.step()\n            optimizer.zero_grad()\n",
        "optimizer.step()", "step at the end of `loader` too, on the remaining batches", (),
        "for i, (x, y) in enumerate(DataLoader(data))",
        "`optimizer.step()` belongs after this loop too, for the remaining batches",
    ),
}  # fmt: skip


def finding(path, rule, text, primary, help, related):
    path.write_text(text, encoding="utf-8")
    nodes = list(ast.walk(ast.parse(text)))

    def site(code):
        node = next(one for one in nodes if isinstance(one, ast.Call) and ast.unparse(one) == code)
        around = [
            one for one in nodes if isinstance(one, ast.FunctionDef) and one.lineno <= node.lineno <= one.end_lineno
        ]
        name = around[0].name if around else "<module>"
        return Site(str(path), node.lineno, node.col_offset, node.end_lineno, node.end_col_offset, name)

    marks = tuple(Mark(site(code), "seen here") for code in related)
    return Finding(rule, Severity.ERROR, Confidence.HIGH, "a failure", Mark(site(primary), "here"), marks, help=help)


@pytest.mark.parametrize("name", PLACES)
def test_the_place_is_the_certain_one_or_none(name, tmp_path):
    rule, body, primary, help, related, line, label = PLACES[name]
    text = HEAD + body
    found = finding(tmp_path / "train.py", rule, text, primary, help, related)
    new = placed(found).related[len(found.related) :]
    if line is None:
        assert new == ()
        return
    (mark,) = new
    assert mark.label == label
    assert mark.of_remedy
    assert not any(one.of_remedy for one in found.related)
    assert Wanted.of(placed(found)) == Wanted.of(found)
    code = text.splitlines()[mark.site.line - 1].encode()
    assert code[mark.site.column : mark.site.end_column].decode() == line


def test_a_line_that_has_a_mark_gets_no_second_one(tmp_path):
    rule, body, primary, help, _, _, _ = PLACES["a warmup after each step"]
    found = finding(tmp_path / "train.py", rule, HEAD + body, primary, help, ("optimizer.step()",))
    assert placed(found) == found


def test_another_file_than_the_one_that_ran_has_no_place(tmp_path):
    rule, body, primary, help, related, _, _ = PLACES["train mode before the loop over batches"]
    found = finding(tmp_path / "train.py", rule, HEAD + body, primary, help, related)
    moved = replace(found, primary=replace(found.primary, site=replace(found.primary.site, column=3)))
    assert placed(moved) == moved
    gone = replace(found, primary=replace(found.primary, site=replace(found.primary.site, path="missing.py")))
    assert placed(gone) == gone


def test_a_file_that_is_not_python_changes_nothing(tmp_path):
    rule, body, primary, help, related, _, _ = PLACES["train mode before the loop over batches"]
    found = finding(tmp_path / "train.py", rule, HEAD + body, primary, help, related)
    other = tmp_path / "other.py"
    other.write_text("def f(:\n", encoding="utf-8")
    broken = replace(found, primary=replace(found.primary, site=replace(found.primary.site, path=str(other))))
    assert placed(broken) == broken
