"""Exercises with functions to be written: the solution passes, the file as given and wrong versions do not."""

import ast
import json
import warnings

import pytest

from truestep.exercises.behaviour import __main__ as behaviour
from truestep.exercises.catalogue import FunctionsToWrite, exercises
from truestep.exercises.judging import BehaviourCheck, judge_functions

WRITTEN = {name: one for name, one in exercises().items() if isinstance(one, FunctionsToWrite)}


def written(name, text, tmp_path):
    path = tmp_path / WRITTEN[name].file
    path.write_text(text, encoding="utf-8")
    return path


def checks(name, text, tmp_path):
    """Return the results of the checks, which run in this process."""
    path, result = written(name, text, tmp_path), tmp_path / "result"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        behaviour.main(path.stem, str(path), str(result))
    return [BehaviourCheck(*json.loads(line)) for line in result.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("name", WRITTEN)
def test_the_solution_passes_all_checks(name, tmp_path):
    results = checks(name, WRITTEN[name].solution(), tmp_path)
    assert len(results) >= 3
    assert not [one for one in results if not one.passed]


@pytest.mark.parametrize("name", WRITTEN)
def test_the_file_as_given_passes_none(name, tmp_path):
    results = checks(name, WRITTEN[name].text(), tmp_path)
    assert len(results) >= 3
    assert {one.message.split(",")[0] for one in results} == {"not written yet"}


def test_there_are_eleven():
    assert len(WRITTEN) == 11
    for one in WRITTEN.values():
        given = one.text()
        ast.parse(given)
        functions = [node for node in ast.walk(ast.parse(given)) if isinstance(node, ast.FunctionDef)]
        assert functions
        assert all(len(node.body) == 2 and ast.get_docstring(node) for node in functions), one.name


WRONG = [
    ("minimal-loop", "        optimizer.zero_grad()\n", "", "Further epochs follow their own gradients", "cleared"),
    ("minimal-loop", "    model.train()\n", "", "Layers such as dropout", "train mode"),
    ("overfit-one-batch", "loss.item()", "loss", "It returns one number per step", "Tensor"),
    ("overfit-one-batch", "    model.train()\n", "", "The model learns in train mode", "eval mode"),
    ("step-decay", "        scheduler.step()\n", "            scheduler.step()\n", "The rates of twelve", "calls"),
    ("convolutions", ".flatten(1))", ".flatten(1)).softmax(1)", "The scores are logits", "softmax"),
    ("clipped-step", "    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)\n    optimizer.step()",
     "    optimizer.step()\n    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)",
     "Large gradients are clipped before the step", "clip before step()"),
    ("clipped-step", "    optimizer.zero_grad()\n", "", "Gradients of earlier steps do not count", "cleared"),
    ("shapes", "dim %= len(shape)", "dim %= 2", "A mean over a dimension", "after_mean"),
    ("tape", "passes * 2 * x", "2 * x", "Several passes without clearing", "adds"),
    ("diagnostics", "any(module.training for module in model.modules())", "model.training", "Modes of all layers",
     "each layer"),
    ("same-room", "isinstance(batch, list | tuple)", "isinstance(batch, tuple)", "A tuple and a list", "targets"),
    ("accumulate", "cross_entropy(model(x), y, reduction=\"sum\") / samples",
     "cross_entropy(model(x), y) / len(batches)",
     "Batches of different sizes", "mean of means"),
    ("accumulate", "    model.zero_grad()\n", "", "Gradients that were there before", "cleared"),
    ("exported", "    model.eval()\n", "", "On new inputs, the program", "eval mode"),
    ("exported", "        model.train(training)\n", "        model.train()\n", "The model has the mode", "False"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "before", "after", "title", "teaches"), WRONG)
def test_a_wrong_version_gets_a_teaching_error(name, before, after, title, teaches, tmp_path):
    solution = WRITTEN[name].solution()
    assert solution.count(before) == 1
    results = checks(name, solution.replace(before, after), tmp_path)
    failed = {one.title: one.message for one in results if not one.passed}
    (message,) = [said for about, said in failed.items() if about.startswith(title)]
    assert teaches in message


def test_errors_name_the_line_of_the_user(tmp_path):
    results = checks("tape", WRITTEN["tape"].text().replace("raise NotImplementedError", "return 1 / 0"), tmp_path)
    assert results[0].message == "ZeroDivisionError: division by zero, at line 10 of tape.py"


def test_a_file_that_cannot_be_imported_is_shown_with_its_error(tmp_path):
    path = written("tape", "def gradient_of_mean(:\n", tmp_path)
    (only,) = judge_functions(WRITTEN["tape"], path)
    assert not only.passed
    assert "SyntaxError" in only.message


@pytest.mark.program
def test_code_that_never_ends_is_stopped_and_keeps_the_checks_before(tmp_path):
    text = WRITTEN["tape"].solution().replace("return passes * 2 * x", "while True:\n        passes += 1")
    first, last = judge_functions(WRITTEN["tape"], written("tape", text, tmp_path), seconds=12)
    assert (first.passed, last.passed) == (True, False)
    assert "still ran after 12 s" in last.message
