"""`truestep.watch` in a notebook: cells are compiled under separate names, and found again through linecache."""

from __future__ import annotations

import ast
import hashlib
import io
import linecache
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import truestep
from truestep.config import Options
from truestep.findings import Finding, Summary
from truestep.report import write

pytest.importorskip("torch")

SETUP = """
import torch, truestep
import torch.nn as nn
torch.manual_seed(0)
model = nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=1e-3)
x, y = torch.randn(16, 4), torch.randn(16, 1)
"""
NEVER_CLEARED = """
with truestep.watch() as session:
    for epoch in range(8):
        loss = (model(x) - y).pow(2).mean()
        loss.backward()
        opt.step()
"""
CLEARED = NEVER_CLEARED.replace("opt.step()", "opt.step(); opt.zero_grad()")


class Notebook:
    """Runs cells as IPython does: each compiled under its own name, statement by statement, in one namespace."""

    def __init__(self, style: str) -> None:
        self.namespace: dict[str, Any] = {"__name__": "__main__"}
        self.style = style
        self.count = 0

    def run(self, cell: str) -> str:
        """Run a cell and return the name it was compiled under."""
        self.count += 1
        source = cell.strip() + "\n"
        digest = hashlib.sha1(source.encode()).hexdigest()[:12]
        name = self.style.format(count=self.count, digest=digest)
        # IPython keeps cells for good: linecache.checkcache leaves entries without a time alone.
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        for statement in ast.parse(source, name).body:
            exec(compile(ast.Module([statement], []), name, "exec"), self.namespace)
        return name


@pytest.fixture(params=["<ipython-input-{count}-{digest}>", "/tmp/ipykernel_4711/{digest}.py"])
def notebook(request: pytest.FixtureRequest) -> Iterator[Notebook]:
    before = set(linecache.cache)
    yield Notebook(request.param)
    for name in set(linecache.cache) - before:
        del linecache.cache[name]


def line_of(cell: str, text: str) -> int:
    return next(number for number, line in enumerate(cell.strip().splitlines(), 1) if text in line)


def only(findings: tuple[Finding, ...]) -> Finding:
    (finding,) = findings
    return finding


def report(session: truestep.Session, format: str = "text") -> str:
    stream = io.StringIO()
    summary: Summary = session.stop()
    write(summary, Options(format=format), stream)
    return stream.getvalue()


def test_finding_names_the_line_of_the_cell(notebook: Notebook) -> None:
    notebook.run(SETUP)
    name = notebook.run(NEVER_CLEARED)
    finding = only(notebook.namespace["session"].findings)
    assert finding.rule == "missing-zero-grad"
    site = finding.primary.site
    assert site is not None
    assert (site.path, site.line) == (name, line_of(NEVER_CLEARED, "opt.step()"))


def test_report_shows_an_excerpt_of_the_cell(notebook: Notebook) -> None:
    notebook.run(SETUP)
    name = notebook.run(NEVER_CLEARED)
    text = report(notebook.namespace["session"])
    assert "opt.step()" in text
    assert Path(name).name in text
    assert '"        opt.step()"' in report(notebook.namespace["session"], "json")


def test_each_report_shows_its_own_cell(notebook: Notebook) -> None:
    notebook.run(SETUP)
    first = notebook.run(NEVER_CLEARED)
    second = notebook.run(NEVER_CLEARED.replace("opt.step()", "\n        opt.step()  # again"))
    site = only(notebook.namespace["session"].findings).primary.site
    assert site is not None
    assert first != site.path == second
    assert "# again" in report(notebook.namespace["session"])


def test_repaired_cell_is_clean(notebook: Notebook) -> None:
    notebook.run(SETUP)
    notebook.run(NEVER_CLEARED)
    notebook.run("opt.zero_grad()")
    notebook.run(CLEARED)
    assert notebook.namespace["session"].findings == ()


def test_gradients_left_by_an_earlier_cell_are_not_a_finding(notebook: Notebook) -> None:
    notebook.run(SETUP)
    notebook.run("(model(x) - y).pow(2).mean().backward()")
    notebook.run(CLEARED)
    assert notebook.namespace["session"].findings == ()


def test_session_over_several_cells(notebook: Notebook) -> None:
    notebook.run(SETUP)
    notebook.run("session = truestep.watch(); session.start()")
    training = notebook.run(
        textwrap.dedent(
            """
            def train_step():
                loss = (model(x) - y).pow(2).mean()
                loss.backward()
                opt.step()
            """
        )
    )
    notebook.run("for _ in range(4): train_step()")
    notebook.run("1 + 1")
    notebook.run("for _ in range(4): train_step()")
    assert only(notebook.namespace["session"].findings).rule == "missing-zero-grad"
    notebook.run("summary = session.stop()")
    finding = only(notebook.namespace["summary"].findings)
    site = finding.primary.site
    assert site is not None
    assert (site.path, site.line, site.function) == (training, 4, "train_step")
    assert (finding.seen.count, finding.seen.total) == (7, 8)


def test_objects_of_an_earlier_cell_are_known(notebook: Notebook) -> None:
    """Model, optimizer and schedule were built before anything was watched."""
    notebook.run(SETUP)
    notebook.run("schedule = torch.optim.lr_scheduler.StepLR(opt, 2)")
    notebook.run(NEVER_CLEARED.replace("opt.step()", "opt.step(); opt.zero_grad(); schedule.step()"))
    session = notebook.namespace["session"]
    assert session.findings == ()
    assert session.steps == 8


def test_suppression_in_a_cell_counts(notebook: Notebook) -> None:
    notebook.run(SETUP)
    notebook.run(NEVER_CLEARED.replace("opt.step()", "opt.step()  # truestep: ignore[missing-zero-grad] on purpose"))
    session = notebook.namespace["session"]
    assert session.findings == ()
    assert only(session.stop().findings).suppressed


def test_interrupted_cell_keeps_what_was_found(notebook: Notebook) -> None:
    notebook.run(SETUP)
    with pytest.raises(KeyboardInterrupt):
        notebook.run(NEVER_CLEARED + "        if epoch == 5: raise KeyboardInterrupt\n")
    session = notebook.namespace["session"]
    assert session.how == "interrupted"
    assert only(session.findings).rule == "missing-zero-grad"
