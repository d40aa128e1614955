"""A variable that is zero before a loop, overwritten in each pass and read only behind it is named with its use."""

import textwrap

import pytest

from truestep.events import Site
from truestep.probes.evaluation.loops import loop_around


def read(tmp_path, text):
    path = tmp_path / "train.py"
    text = textwrap.dedent(text)
    path.write_text(text)
    lines = text.splitlines()
    line = next(number for number, one in enumerate(lines, 1) if "model(x)" in one)
    column = lines[line - 1].index("model(x)")
    return loop_around(Site(str(path), line, column, line, column + len("model(x)")))


def evaluation(statement, end="return correct / n", start="correct = 0"):
    return f"""
    def evaluate(model, loader, n):
        {start}
        with torch.no_grad():
            for x, y in loader:
                {statement}
        {end}
    """


@pytest.mark.parametrize(
    ("text", "name", "use"),
    [
        (evaluation("correct = (model(x).argmax(1) == y).sum()"), "correct", "divided"),
        (
            evaluation("correct = (model(x) > 0).sum()", "print(100 * correct.item() / n)", "correct, total = 0, 0"),
            "correct",
            "divided",
        ),
        (
            evaluation("total = len(y); found += model(x)", "return found / total", "found = total = 0"),
            "total",
            "divisor",
        ),
        (evaluation("loss = f(model(x), y)", "loss.backward()", "loss = torch.zeros(())"), "loss", "differentiated"),
    ],
)
def test_a_sum_that_is_overwritten_is_named(tmp_path, text, name, use):
    found = read(tmp_path, text)
    assert (found.name, found.use) == (name, use)
    assert found.place.line == 6


@pytest.mark.parametrize(
    "text",
    [
        evaluation("correct += (model(x).argmax(1) == y).sum()"),
        evaluation("correct = correct + (model(x).argmax(1) == y).sum()"),
        evaluation("correct = f(model(x)); print(correct)"),
        evaluation("correct = f(model(x))", "return correct"),
        evaluation("correct = f(model(x))", start="correct = None"),
        evaluation("out = model(x)\n            if y: correct = f(out)"),
        evaluation("count = 1 + y; found += model(x)", "return found / count", "found = count = 0"),
        evaluation("loss = f(model(x), y); loss.backward()", "return loss / n", "loss = 0"),
    ],
)
def test_other_variables_are_not_named(tmp_path, text):
    assert read(tmp_path, text).name == ""


def test_a_call_outside_of_loops_has_none(tmp_path):
    assert read(tmp_path, "correct = 0\nout = model(x)\n") is None


def test_a_backward_pass_in_the_loop_is_seen(tmp_path):
    text = evaluation("loss = f(model(x), y); loss.backward(); correct = loss.item()")
    assert read(tmp_path, text).trains


def epochs(total="len(data)", before="correct = 0", within="total = 0", statement="correct += model(x)", condition=""):
    return f"""
    def fit(model, loader, data):
        {before}
        for epoch in range(9):
            {within}
            for x, y in loader:
                {statement}
            {condition}print(correct / ({total}))
    """


@pytest.mark.parametrize(
    "text",
    [epochs(), epochs("total", statement="correct += model(x); total += len(y)"), epochs("max(len(data), 1)")],
)
def test_a_sum_over_all_epochs_by_the_total_of_one_is_kept(tmp_path, text):
    found = read(tmp_path, text)
    assert (found.name, found.use) == ("correct", "kept")


@pytest.mark.parametrize(
    "text",
    [
        epochs(within="correct = 0"),
        epochs("len(data) * (epoch + 1)"),
        epochs("total", before="correct = total = 0", within="pass", statement="correct += model(x); total += len(y)"),
        epochs("total", within="total = len(data) * (epoch + 1)"),
        epochs(condition="if epoch == 8: "),
        epochs(before="correct = load()"),
    ],
)
def test_sums_with_totals_of_the_same_passes_are_not_kept(tmp_path, text):
    assert read(tmp_path, text).name == ""
