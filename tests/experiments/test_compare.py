"""`truestep compare`: two lists of arguments over seeds."""

import json
import math
from dataclasses import replace

import pytest
from commands import called

from truestep.cli.experimenting.compare import split
from truestep.errors import NoExperiment, UsageError
from truestep.experiments.compare.compare import LOSS, ChoiceAnswer, compare
from truestep.experiments.figures.printed import better
from truestep.experiments.reports.compare import document, sentence, text
from truestep.experiments.running.outcome import RunOutcome, Step
from truestep.supervision.launching.launch import Target

CHOICES = (("--lr", "0.1"), ("--lr", "0.2"))
SCRIPT = """
import sys
import torch
torch.manual_seed(0)
x = torch.randn(64, 4)
y = x.sum(1, keepdim=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=float(sys.argv[2]))
for step in range(int(sys.argv[1])):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
print(f"held-out error {float(loss.detach()):.9f}")
"""


class Runs:
    """A bench with runs of given results: `end(choice, seed)` returns the losses, and the last line of the output."""

    target = Target("train.py", ())

    def __init__(self, end, **outcome):
        self.end = end
        self.outcome = outcome
        self.began = []

    def run(self, variant):
        self.began.append(variant.name)
        losses, said = self.end(variant.name[0], variant.changes[0][1]["offset"])
        steps = tuple(Step(0, loss, 1.0, 0.1) for loss in losses)
        return replace(RunOutcome(variant, "finished", steps, 1.0, said=said), **self.outcome)


def accuracies(a, b):
    return lambda name, seed: ((2.0, 1.0), f"accuracy {(a if name == 'A' else b)[seed]}")


def test_the_better_choice_is_named_with_its_interval():
    result = compare(Runs(accuracies((0.80, 0.82, 0.78), (0.901, 0.92, 0.879))), CHOICES, 3)
    assert result.answer is ChoiceAnswer.SECOND
    (judging,) = result.judging
    assert (judging.figure.name, judging.winner) == ("accuracy", "B")
    assert sentence(result) == ("B is better: accuracy is 0.1 higher with B, 0.0975 to 0.102 with 95 % confidence")
    assert all(len(line) <= 80 for line in text(result).splitlines())
    assert document(result)["answer"] == "B is better"


def test_a_lower_error_is_better_and_the_training_loss_decides_nothing_beside_it():
    runs = Runs(lambda name, seed: ((1.0 if name == "A" else 5.0,), f"error {(0.1, 0.2)[name == 'B'] + seed / 100}"))
    result = compare(runs, CHOICES, 3)
    assert result.answer is ChoiceAnswer.FIRST
    assert [(one.figure.name, one.judges, one.winner) for one in result.measured] == [
        ("error", True, "A"),
        (LOSS, False, "A"),
    ]
    assert "error is 0.1 lower with A" in sentence(result)


def test_the_training_loss_decides_without_a_printed_number():
    result = compare(Runs(lambda name, seed: ((3.0, 1.0 if name == "A" else 0.5), "done")), CHOICES, 3)
    assert [one.figure.name for one in result.judging] == [LOSS]
    assert result.answer is ChoiceAnswer.SECOND


@pytest.mark.parametrize(
    ("b", "answer", "said"),
    [
        ((0.8, 0.82, 0.78), ChoiceAnswer.ALIKE, "they do not differ: accuracy by less than 0.5 % of its value"),
        ((0.7, 0.9, 0.81), ChoiceAnswer.UNSURE, "cannot tell over 3 seeds: accuracy varies too much from seed"),
    ],
)
def test_seeds_that_do_not_decide(b, answer, said):
    result = compare(Runs(accuracies((0.8, 0.82, 0.78), b)), CHOICES, 3)
    assert result.answer is answer
    assert said in sentence(result)


def test_numbers_in_favour_of_either_choice_are_mixed():
    def end(name, seed):
        return (1.0,), f"accuracy {0.8 + 0.1 * (name == 'B')} loss {0.3 + 0.2 * (name == 'B')}"

    result = compare(Runs(end), CHOICES, 3)
    assert result.answer is ChoiceAnswer.MIXED
    assert "higher with B" in sentence(result)
    assert "lower with A" in sentence(result)
    assert compare(Runs(end), CHOICES, 3, metric="accuracy").answer is ChoiceAnswer.SECOND


def test_a_number_without_a_direction_needs_one():
    runs = Runs(lambda name, seed: ((), f"result: {1.5 + (name == 'B')}"))
    result = compare(runs, CHOICES, 3)
    assert result.answer is ChoiceAnswer.DIFFERENT
    assert "--better higher" in sentence(result)
    assert compare(runs, CHOICES, 3, direction="lower").answer is ChoiceAnswer.FIRST


def test_a_run_that_is_not_finite_is_the_worse_one():
    result = compare(Runs(lambda name, seed: ((math.inf if name == "A" else 1.0,), "")), CHOICES, 3)
    assert result.answer is ChoiceAnswer.SECOND
    assert sentence(result) == f"B is better: {LOSS} is not finite with A"
    result = compare(Runs(accuracies((0.8, 0.9, 0.7), ("nan", "nan", 0.8))), CHOICES, 3)
    assert sentence(result) == "A is better: accuracy is not finite with B"
    result = compare(Runs(accuracies(("nan",) * 3, ("nan",) * 3)), CHOICES, 3)
    assert result.answer is ChoiceAnswer.UNSURE
    assert sentence(result) == "cannot tell: accuracy is not finite with A and with B"


def test_the_order_alternates_and_the_budget_leaves_out_seeds():
    runs = Runs(accuracies((0.8,) * 5, (0.9,) * 5))
    result = compare(runs, CHOICES, 5, budget_s=0.0)
    assert runs.began == ["A, seed 0", "B, seed 0", "B, seed 1", "A, seed 1"]
    assert (result.seeds, result.ended) == (2, "budget")
    assert sentence(result).endswith("the budget ended after 2 of 5 seeds")


@pytest.mark.parametrize("seed", [1, 3])
def test_ctrl_c_keeps_complete_seeds(seed):
    def end(name, at):
        if at == seed:
            raise KeyboardInterrupt
        return (1.0,), f"accuracy {0.8 + 0.1 * (name == 'B') + at / 1000}"

    if seed == 1:
        with pytest.raises(KeyboardInterrupt):
            compare(Runs(end), CHOICES, 5)
    else:
        result = compare(Runs(end), CHOICES, 5)
        assert (result.seeds, result.ended) == (3, "interrupted")


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        ({"how": "exited", "said": "train.py: error: no such option"}, "exited with the arguments of A"),
        ({"how": "killed"}, "exceeded its limit"),
        ({"all_steps": (), "said": "bye"}, "without training"),
    ],
)
def test_runs_that_cannot_be_compared_end_it(outcome, said):
    with pytest.raises(NoExperiment, match=said):
        compare(Runs(accuracies((0.8,) * 3, (0.9,) * 3), **outcome), CHOICES, 3)


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        ("train.py: error: unrecognized arguments: --seeds 4", "truestep compare OPTIONS train.py"),
        ("train.py: error: the following arguments are required: --data", "start it alone: python train.py --lr 0.1"),
    ],
)
def test_options_after_the_script_are_explained(said, remedy):
    runs = Runs(accuracies((0.8,) * 3, (0.9,) * 3), how="exited", said=said)
    with pytest.raises(NoExperiment) as caught:
        compare(runs, (["--lr", "0.1"], []), 3)
    assert remedy in caught.value.remedy


def test_an_unknown_metric_is_refused_after_the_first_seed():
    runs = Runs(accuracies((0.8,) * 3, (0.9,) * 3))
    with pytest.raises(NoExperiment, match='no number is called "f1"'):
        compare(runs, CHOICES, 3, metric="f1")
    assert len(runs.began) == 2


@pytest.mark.parametrize("arguments", [[], ["--lr", "1"], ["--", "a", "--", "b", "--", "c"], ["--", "--", ""], ["--"]])
def test_other_numbers_of_choices_are_usage_errors(arguments):
    if arguments == ["--", "--", ""]:
        assert split(arguments) == ([], [], [""])
        return
    with pytest.raises(UsageError):
        split(arguments)


@pytest.mark.parametrize(
    ("name", "direction"),
    [("val_acc", "higher"), ("epoch 3 test error", "lower"), ("accuracy loss", "lower"), ("result", "")],
)
def test_the_direction_of_a_number_is_in_its_name(name, direction):
    assert better(name) == direction


@pytest.mark.program
def test_the_command_compares_a_script(tmp_path, monkeypatch, capfd):
    (tmp_path / "train.py").write_text(SCRIPT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    choices = ["train.py", "8", "--", "0.1", "--", "0.01"]
    done = called(capfd, monkeypatch, "compare", "--seeds", "3", "--format", "json", "--picture", "c.svg", *choices)
    assert done.code == 0, done.err
    result = json.loads(done.out)
    assert result["choices"] == {"A": ["8", "0.1"], "B": ["8", "0.01"]}
    assert result["answer"] == "A is better"
    assert [figure["name"] for figure in result["figures"]] == ["held-out error", LOSS]
    assert [len(series) for series in result["losses"]["B"]] == [8, 8, 8]
    assert "run 6: A, seed 2" in done.err or "run 6: B, seed 2" in done.err
    assert (tmp_path / "c.svg").read_text().count("<polyline") == 2
