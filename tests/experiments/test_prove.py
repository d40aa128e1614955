"""`truestep prove`: remedies mend their failures, and noise is not taken for a difference."""

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
from tiers import only

from truestep.errors import NoExperiment
from truestep.experiments.changes import CHANGES, REMEDIES, Aimed
from truestep.experiments.figures.figure import Figure
from truestep.experiments.figures.printed import last_figures
from truestep.experiments.prove.prove import prove
from truestep.experiments.running.bench import Bench
from truestep.experiments.running.outcome import Variant
from truestep.rules import all_rules
from truestep.supervision.launching.launch import Target

PROOFS = Path(__file__).parents[2] / "proofs"
QUICK = {"missing-zero-grad"}
ROUNDED = {"accumulation-not-normalised", "clip-before-backward"}
"""Their losses are those of the right program but for rounding."""
LATER = {
    "backward-without-step",
    "iterable-repeated-by-workers",
    "layer-created-in-forward",
    "logits-into-probability-loss",
    "symmetric-initialisation",
    "training-data-not-shuffled",
}
"""Their remedy begins after some steps, or has other random numbers: the end lies with that of the right program."""
OF_TIME = {"anomaly-mode-left-on", "workers-respawned"}
"""Their figure is a time, which no test asserts."""
OF_MEMORY = {"no-grad-missing", "retain-graph-in-loop", "loss-kept-with-graph", "hidden-state-not-detached"}
"""Their figure is in megabytes, which differ a little from run to run."""
SCRIPT = """
import sys
import torch
torch.manual_seed(int(sys.argv[1]))
x = torch.randn(64, 4)
y = x.sum(1, keepdim=True) + 0.1 * torch.randn(64, 1)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(40):
    if sys.argv[2] == "clear":
        optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
print(f"end {float(loss):.6f}")
"""
KEEPS_OUTPUTS = """
import torch
x = torch.randn(64, 4)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
outputs = []
for step in range(80):
    optimizer.zero_grad()
    output = model(x)
    output.pow(2).mean().backward()
    optimizer.step()
    outputs.append(output)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "train.py").write_text(SCRIPT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def bench(folder, script, *arguments, steps=5000):
    return Bench(Target(str(script), arguments), steps, folder=folder)


@pytest.mark.parametrize(
    "rule", [pytest.param(rule, marks=pytest.mark.program if rule in QUICK else pytest.mark.slow) for rule in REMEDIES]
)
def test_the_remedied_program_follows_the_right_one(rule, folder):
    seeded, change = ("seeded", {"offset": 0}), CHANGES[REMEDIES[rule]]
    aimed, silences = issubclass(change, Aimed), change.silences
    broken = None
    if aimed or rule in LATER | OF_MEMORY:
        broken = bench(folder, PROOFS / rule / "bad.py", "1").run(Variant("broken", (seeded,)))
        assert not aimed or rule in broken.findings
    remedy = (change.name, {"aims": broken.aims(rule)} if aimed else {})
    mended = bench(folder, PROOFS / rule / "bad.py", "1").run(Variant("mended", (seeded, remedy)))
    right = bench(folder, PROOFS / rule / "good.py", "1").run(Variant("right", (seeded,)))
    assert mended.how == right.how == "finished", mended.said + right.said
    assert mended.steps == right.steps
    assert mended.changes[change.name]["applied"] > 0
    assert not (silences and rule in mended.findings)
    (ours,), (theirs,) = last_figures(mended.said).values(), last_figures(right.said).values()
    if rule in LATER | OF_MEMORY:
        (before,) = last_figures(broken.said).values()
        if rule in OF_MEMORY:  # getrusage in these programs begins with the memory of this process
            ours, theirs, before = (outcome.peak_bytes for outcome in (mended, right, broken))
        assert abs(ours - theirs) < 0.3 * abs(before - theirs)
    if rule in LATER:
        return
    if rule in OF_MEMORY:
        assert mended.peak_bytes < broken.peak_bytes
    elif rule not in OF_TIME:
        assert ours == pytest.approx(theirs, rel=0.05, abs=0.02)
    if rule not in ROUNDED:
        assert mended.losses == pytest.approx(right.losses, rel=0.05, abs=0.02)


def test_every_remedy_is_of_a_rule():
    assert set(REMEDIES) <= set(all_rules())
    assert set(REMEDIES.values()) <= set(CHANGES)
    assert len(REMEDIES) == sum(len(change.remedies) for change in CHANGES.values()), "one remedy for each rule"


@pytest.mark.slow
def test_variants_of_a_repetition_begin_with_the_same_numbers_and_repetitions_do_not(folder):
    def losses(offset):
        return bench(folder, "train.py", "3", "clear").run(Variant("x", (("seeded", {"offset": offset}),))).losses

    assert losses(1) == losses(1)
    assert losses(1)[0] != losses(2)[0]
    plain = bench(folder, "train.py", "3", "clear").run(Variant("as it is"))
    assert plain.losses == losses(0)


@pytest.mark.slow
def test_the_command_proves_what_it_finds(folder):
    command = [sys.executable, "-m", "truestep", "prove", "--seeds", "3", "--picture", "curves.svg", "--format", "json"]
    done = subprocess.run([*command, "train.py", "0", "add"], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    (proof,) = json.loads(done.stdout)
    assert (proof["rule"], proof["answer"]) == ("missing-zero-grad", "matters")
    assert "run 7: clear-gradients, seed 2" in done.stderr
    names = [figure["name"] for figure in proof["figures"]]
    assert names == ["loss at the end", "end"]
    assert [len(curve) for curve in proof["losses"]["remedied"]] == [40, 40, 40]
    assert [len(curve) for curve in proof["gradient_norms"]["as_it_is"]] == [40, 40, 40]
    assert (folder / "curves.svg").read_text().count("<polyline") == 2
    assert sorted(path.name for path in folder.iterdir()) == ["curves.svg", "train.py"]


@pytest.mark.parametrize("rule", only(["eval-mode-missing"], ["broadcast-target", "eval-mode-missing"]))
def test_a_rule_that_was_not_found_is_not_proved(rule, folder):
    with pytest.raises(NoExperiment, match=f"{rule} was not found in a run of 5 steps that was stopped"):
        prove(bench(folder, "train.py", "0", "clear", steps=5), rule, 3)


def test_a_remedy_that_applies_to_nothing_is_reported():
    from truestep.experiments.prove.prove import _check
    from truestep.experiments.running.outcome import RunOutcome, Step

    ran = RunOutcome(Variant("x"), "finished", (Step(0, 1.0, None, 0.1),))
    with pytest.raises(NoExperiment, match="found nothing to change"):
        _check("broadcast-target", "align-target", (ran, ran))


@pytest.mark.slow
def test_a_remedy_that_does_not_reach_all_of_a_failure_is_reported(folder):
    (folder / "train.py").write_text(KEEPS_OUTPUTS)
    with pytest.raises(NoExperiment, match="does not fix every occurrence"):
        prove(bench(folder, "train.py"), "loss-kept-with-graph", 2)


@pytest.mark.slow
def test_time_and_memory_are_compared_where_a_failure_costs_these(folder):
    proof = prove(bench(folder, PROOFS / "loss-kept-with-graph" / "bad.py"), "loss-kept-with-graph", 2)
    names = {figure.name: figure for figure in proof.figures}
    assert {"loss at the end", "ms per step", "peak memory in MB"} < set(names)
    assert not names["loss at the end"].is_beyond_noise
    assert names["peak memory in MB"].difference < -20
    assert proof.losses[0] == proof.losses[1]


def test_a_rule_without_remedy_is_reported(folder):
    with pytest.raises(NoExperiment, match="no remedy that can be applied from outside"):
        prove(bench(folder, "train.py", "0", "clear"), "graph-cut")


@pytest.mark.parametrize(
    ("before", "after", "sure"),
    [
        ((1.0, 1.1, 0.9), (0.5, 0.6, 0.4), True),
        ((1.0, 1.1, 0.9), (1.0, 1.1, 0.9), False),
        ((1.0, 2.0, 3.0), (1.1, 1.9, 3.1), False),
        ((0.61, 0.62, 0.60), (0.60, 0.618, 0.57), False),  # one sign, and within the noise of three seeds
        ((0.61, 0.62, 0.60), (0.51, 0.53, 0.51), True),
        ((1.0, 1.0, 1.0), (0.999, 0.5, 0.1), False),
        ((math.nan, 1.0, 1.0), (0.5, 0.5, 0.5), True),
        ((1.0, 1.0), (math.nan, 0.5), False),
        ((1.0,), (0.0,), False),
        ((1.0, 1.1, 0.9), (1.001, 1.101, 0.901), False),  # sure, and too little to matter
    ],
)
def test_a_difference_is_one_beyond_the_noise_and_the_bound(before, after, sure):
    assert Figure("loss", before, after).is_beyond_noise is sure


@pytest.mark.parametrize(
    ("before", "after", "sure"),
    [
        ((10.0, 11.0, 10.5), (5.0, 5.5, 5.2), True),
        ((5.0, 5.5, 5.2), (10.0, 11.0, 10.5), False),  # a remedy takes nothing
        ((100.0, 101.0, 102.0), (99.0, 100.0, 101.0), False),  # too little
        ((30.0, 40.0, 50.0), (29.0, 32.0, 35.0), False),  # between two and four standard errors
        ((10.0, 11.0), (8.0, 10.0), False),
    ],
)
def test_a_cost_differs_where_the_remedy_lowers_it_by_more_than_a_machine_does(before, after, sure):
    assert Figure("ms per step", before, after, least=0.05, cost=True).is_beyond_noise is sure


@pytest.mark.parametrize(
    ("said", "figures"),
    [
        ("epoch 3\nloss 0.5 at step 7\nsaved 3 files", {"loss": 0.5}),
        ("v1.2.3 accuracy: 91.5%, f1=0.9", {"v1.2.3 accuracy": 91.5, "f1": 0.9}),
        ("no number here\n12 12", {}),
        ("1e-3", {"printed number": 0.001}),
        ("loss 0.5 time 12.5 acc 0.9", {"loss": 0.5, "acc": 0.9}),
        ("loss 0.5 in 12.5 s, 30.1 it/s, 1.5 minutes", {"loss": 0.5}),
    ],
)
def test_figures_are_those_of_the_last_line_with_a_fraction(said, figures):
    assert last_figures(said) == figures


@pytest.mark.parametrize(("after", "raised"), [((2.0, 2.1, 1.95), True), ((0.5, 0.6, 0.4), False)])
def test_a_remedy_that_raises_the_loss_is_reported(after, raised):
    from truestep.experiments.prove.prove import LOSS, RemedyProof
    from truestep.experiments.reports.prove import text as text_of

    curves = (((1.0, 1.0),) * 3, ((2.0, 2.0),) * 3)
    figure = Figure(LOSS, (1.0, 1.1, 0.9), after)
    text = " ".join(text_of(RemedyProof("clip-after-step", "clip-first", (figure,), (), curves, curves)).split())
    assert "the finding makes a difference here" in text
    assert ("the training loss ends higher with the remedy" in text) is raised


@pytest.mark.parametrize(
    ("how", "others", "sentence"),
    [
        ("crashed", [], "cannot tell: nothing was found in a run of 1 step that crashed"),
        ("stopped", [], "nothing was found in a run of 1 step that was stopped: there is nothing to prove"),
        ("finished", ["graph-cut"], "cannot decide about graph-cut: found in a run of 1 step that finished"),
    ],
)
def test_where_there_is_nothing_to_prove_that_is_reported(how, others, sentence):
    from truestep.experiments.reports.prove import rest
    from truestep.experiments.running.outcome import RunOutcome, Step

    (said,) = rest(RunOutcome(Variant("x"), how, (Step(0, 1.0, None, 0.1),)), others, bool(others))
    assert " ".join(said.split()).startswith(sentence)
