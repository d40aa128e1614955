"""A method that is named without its parentheses is pointed at where its call is missing."""

import textwrap

import pytest

from truestep.events import Site
from truestep.findings import Confidence, Finding, Mark, Severity
from truestep.supervision.uncalled import pointed


def finding(path, rule, line):
    return Finding(
        rule, Severity.ERROR, Confidence.HIGH, "it happened", Mark(Site(str(path), line), "here"), help="call it"
    )


def written(tmp_path, text):
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
    return path


LOOP = """
    for x, y in loader:
        {}
        loss = model(x)
        loss.backward()
        optimizer.step()
    """


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("missing-zero-grad", "optimizer.zero_grad"),
        ("missing-zero-grad", "self.trainer.optimizer.zero_grad"),
        ("step-without-backward", "loss.backward"),
        ("backward-without-step", "opt.step"),
        ("eval-mode-missing", "model.eval"),
        ("train-mode-not-restored", "model.train"),
        ("clip-before-unscale", "scaler.unscale_"),
    ],
)
def test_statement_without_parentheses(rule, words, tmp_path):
    path = written(tmp_path, LOOP.format(words))
    found = pointed(finding(path, rule, 5))
    (mark,) = found.related
    assert mark.label == f"`{words}` is named here without parentheses, and is not called"
    assert (mark.site.path, mark.site.line, mark.site.column) == (str(path), 2, 4)
    assert mark.site.end_column == 4 + len(words)
    assert found.help == f"write `{words}()`, with parentheses"


@pytest.mark.parametrize(
    "statement",
    [
        "optimizer.zero_grad()",
        "clear = optimizer.zero_grad",
        "hooks.append(optimizer.zero_grad)",
        "optimizer.step",
        "...",
    ],
)
def test_anything_else_is_left_alone(statement, tmp_path):
    before = finding(written(tmp_path, LOOP.format(statement)), "missing-zero-grad", 5)
    assert pointed(before) == before


def test_two_such_lines_are_left_alone(tmp_path):
    before = finding(written(tmp_path, LOOP.format("a.zero_grad; b.zero_grad")), "missing-zero-grad", 5)
    assert pointed(before) == before


def test_other_functions_do_not_count(tmp_path):
    path = written(
        tmp_path,
        """
        def other():
            optimizer.zero_grad

        def train():
            loss.backward()
            optimizer.step()

        optimizer.zero_grad
        """,
    )
    before = finding(path, "missing-zero-grad", 6)
    assert pointed(before) == before
    assert pointed(finding(path, "missing-zero-grad", 8)).related[0].site.function == "<module>"


def test_rules_of_other_mistakes_and_files_that_are_gone(tmp_path):
    path = written(tmp_path, LOOP.format("optimizer.zero_grad"))
    for before in (finding(path, "graph-cut", 5), finding(tmp_path / "gone.py", "missing-zero-grad", 5)):
        assert pointed(before) == before
    path.write_text("for x in (")
    before = finding(path, "missing-zero-grad", 1)
    assert pointed(before) == before
