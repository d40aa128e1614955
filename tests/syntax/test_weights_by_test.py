"""Weights that are chosen by the test and judged by it: also plain tensors, and beside a validation set aside."""

import ast

import pytest

from truestep.syntax import weights_by_test

KEPT = """
train, test = parts()
for epoch in range(9):
    step(w, x_train)
    acc = evaluate(w, x_test)
    if acc > best:
        best, kept = acc, [one.detach().clone() for one in w]
print(evaluate(kept, x_test))
"""
LOADED = """
for epoch in range(9):
    step(net, x_train)
    acc = evaluate(net, x_test)
    if acc > best:
        best, kept = acc, deepcopy(net.state_dict())
net.load_state_dict(kept)
print(evaluate(net, x_test))
"""
MADE = "x_val = scale(raw_val, mean)\n"


def found(text: str) -> list[tuple[str, bool]]:
    return [(one.by, one.given) for one in weights_by_test(ast.parse(text))]


def test_weights_that_the_figure_gets_are_found() -> None:
    assert found(KEPT) == [("x_test", True)]
    assert found(KEPT.replace("x_test", "test_items")) == [("test_items", True)]
    assert found(LOADED) == [("x_test", False)]


@pytest.mark.parametrize("text", [KEPT, LOADED])
def test_a_validation_that_nothing_reads_is_no_choice(text: str) -> None:
    assert len(found(MADE + text)) == 1
    assert found(MADE + text + "print(evaluate(w, x_val))\n") == []
    assert found(MADE + text.replace("    if acc", "    watch(w, x_val)\n    if acc")) == []


def test_a_validation_that_a_function_reads_is_one() -> None:
    function = "def step(w, x):\n    return check(w, x_val)\n"
    method = "class Watch:\n    def __call__(self, w, x):\n        return check(w, x_val)\n"
    assert found(MADE + function + KEPT) == []
    assert found(MADE + method + KEPT.replace("step(w", "Watch()(w")) == []
    assert len(found(MADE + function.replace("step", "split") + KEPT.replace("step(w", "w.split(w"))) == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("print(evaluate(kept, x_test))", "print(evaluate(w, x_test))"),
        ("print(evaluate(kept, x_test))", "print('upper bound', evaluate(kept, x_test))"),
        ("print(evaluate(kept, x_test))", "print(evaluate(kept, x_test))\nreport(kept, x_new)"),
        ("print(evaluate(kept, x_test))", "print(evaluate(kept, x_test), evaluate(kept, holdout_x))"),
        ("print(evaluate(kept, x_test))", "print(evaluate(kept, x_new))"),
        (
            "        best, kept = acc",
            "        other = w[0].clone()\n    if low > best_low:\n        best_low = copy(low.clone())\n"
            "    if acc > best:\n        best, kept = acc",
        ),
        ("evaluate(w, x_test)", "evaluate(w, test_env)"),
    ],
    ids=["the last ones", "upper bound", "reported elsewhere", "held out", "other samples", "two choices", "episodes"],
)
def test_other_programs_are_quiet(old: str, new: str) -> None:
    assert found(KEPT.replace(old, new)) == []
