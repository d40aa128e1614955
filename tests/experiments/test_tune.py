"""Gains of speed-ups on a script: judged by the report, never by a time."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from truestep.errors import NoExperiment, UsageError
from truestep.experiments.figures.speedup_statistics import Judged, SpeedVerdict
from truestep.experiments.reports.tune import text
from truestep.experiments.running.bench import Bench
from truestep.experiments.running.outcome import RunOutcome, Variant
from truestep.experiments.tune import tune as module
from truestep.experiments.tune.tune import CONTROL, chosen, tune
from truestep.experiments.tune.tuned import SpeedupRow, Tuned
from truestep.experiments.tune.turns import Pair, TurnPlan, take_turns
from truestep.supervision.launching.launch import Target

SCRIPT = """
import sys, time
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __len__(self):
        return 4000
    def __getitem__(self, index):
        time.sleep(float(sys.argv[1]))
        return torch.full((8,), float(index % 7)), index % 2

if len(sys.argv) > 3:
    Slow.__reduce__ = lambda self: 1 / 0
    import multiprocessing
    multiprocessing.set_start_method("spawn")
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
done = 0
for epoch in range(1000):
    for x, y in DataLoader(Slow(), batch_size=8, shuffle=True):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        done += 1
        if done == int(sys.argv[2]):
            sys.exit()
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "train.py").write_text(SCRIPT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    return tmp_path


def bench(folder, *arguments, **options):
    return Bench(Target("train.py", arguments), None, folder=folder, **options)


def test_what_is_tried_is_what_was_asked_for():
    assert "tf32" in chosen([], [])
    assert not {"nothing", "larger-batch", "activation-checkpointing"} & set(chosen([], []))
    assert "larger-batch" in chosen([], [], larger_batch=True)
    assert chosen(["tf32", "compile"], ["compile"]) == ["tf32"]
    assert chosen(["activation-checkpointing"], []) == ["activation-checkpointing"]
    with pytest.raises(UsageError, match='unknown speed-up "fast"'):
        chosen(["fast"], [])


@pytest.mark.program
def test_two_variants_take_their_steps_in_turns(folder):
    plain, other = Variant("as it is"), Variant("again", (("nothing", {}),))
    pair = take_turns(bench(folder, "0", "100000"), plain, other, TurnPlan(3, 2, 6))
    assert len(pair.seconds) == len(pair.ratios) == 6
    assert all(seconds > 0 for turn in pair.seconds for seconds in turn)
    assert [outcome.results["turns"]["turns"] for outcome in pair.outcomes] == [6, 6]
    assert [outcome.how for outcome in pair.outcomes] == ["stopped", "stopped"]
    assert pair.outcomes[1].changes == {"nothing": {"applied": 1}}


@pytest.mark.slow
def test_where_one_variant_dies_the_other_one_ends(folder):
    failing = Variant("workers", (("loader-workers", {}),))
    pair = take_turns(bench(folder, "0", "100000", "unpicklable"), Variant("as it is"), failing, TurnPlan(3, 2, 6))
    assert pair.ratios == ()
    assert [outcome.how for outcome in pair.outcomes] == ["stopped", "crashed"]


@pytest.mark.slow
def test_where_the_script_ends_first_the_turns_until_then_count(folder):
    pair = take_turns(bench(folder, "0", "30"), Variant("as it is"), Variant("again"), TurnPlan(3, 2, 100))
    assert 0 < len(pair.ratios) < 100
    assert pair.outcomes[0].how == "finished"


# --- the course, without processes ---


class Imagined:
    """Stands for bench and turns, with given gains, losses and memory of each speed-up."""

    def __init__(self, monkeypatch, gains, *, losses=None, idle=(), failing=(), memory=None, whole=False):
        self.gains, self.idle, self.failing = gains, set(idle), set(failing)
        self.losses, self.memory = losses or {}, memory or {}
        self.whole = whole
        self.asked = []
        monkeypatch.setattr(module, "take_turns", self.turns)
        monkeypatch.setattr(Bench, "run", lambda _, variant: self.run(variant))

    def run(self, variant):
        names = [name for name, _ in variant.changes if name not in ("seeded", "no-dropout")]
        survey = {"steps": 300, "all_steps": 305, "seconds": 3.0, "phases": {"data": 1.0}, "device": "cpu"}
        outcome = RunOutcome(
            variant,
            "stopped",
            seconds=5.0,
            peak_bytes=int(1000 * self.memory.get(names[0] if names else "", 1)),
            changes={name: {"applied": int(self.applies(name, names))} for name in names},
            results={"survey": survey | {"whole": self.whole}},
        )
        if variant.instruments[0][0] != "losses":
            return outcome
        from truestep.experiments.running.outcome import Step

        shift = sum(self.losses.get(name, 0.0) for name in names)
        return replace(outcome, all_steps=tuple(Step(0, 1.0 + shift, None, 0.1) for _ in range(5)))

    def applies(self, name, names):
        return name not in self.idle or (name == "persistent-workers" and "loader-workers" in names)

    def turns(self, bench, plain, changed, plan):
        self.asked.append(changed.name)
        outcomes = [self.run(variant) for variant in (plain, changed)]
        names = set(changed.name.split(", ")) - set(plain.name.split(", "))
        if names & self.failing:
            outcomes[1] = replace(outcomes[1], how="crashed", said="Traceback\nRuntimeError: no compiler\n\n")
            return Pair((), tuple(outcomes))
        ratio = 1.0
        for name in names:
            gain = self.gains.get(name, 1.0)
            ratio *= gain(changed.name) if callable(gain) else gain
        return Pair(tuple((ratio, 1.0) for _ in range(plan.turns)), tuple(outcomes))

    def tune(self, *names):
        return tune(Bench(Target("x.py"), None), names)


def by_name(result):
    return {row.names[0]: row for row in result.rows}


def test_the_best_comes_first_and_others_are_added_while_they_gain(monkeypatch):
    gains = {
        "fused-optimizer": 1.2,
        "whole-batches": 3.0,
        "channels-last": lambda name: 1.0 if "whole-batches" in name else 1.5,
        "compile": 0.8,
    }
    made = Imagined(monkeypatch, gains)
    result = made.tune(*gains)
    assert [row.names[0] for row in result.rows] == ["whole-batches", "channels-last", "fused-optimizer", "compile"]
    assert [row.status for row in result.rows] == ["gain", "gain", "gain", "slower"]
    assert [(row.names, row.status) for row in result.together] == [
        (("channels-last",), "no gain"),
        (("fused-optimizer",), "gain"),
    ]
    assert result.best == ("whole-batches", "fused-optimizer")
    assert result.whole.judged.ratio == pytest.approx(3.6)
    assert made.asked.count("fused-optimizer") == 2, "a gain is measured in two pairs of processes"
    assert made.asked.count("compile") == 1


def test_speed_ups_that_need_others_are_tried_on_top_of_them(monkeypatch):
    gains = {"loader-workers": 2.0, "persistent-workers": 1.3, "whole-batches": 1.5}
    result = Imagined(monkeypatch, gains, idle=["persistent-workers"]).tune(*gains)
    assert by_name(result)["persistent-workers"].status == "does not apply"
    assert result.best == ("loader-workers", "persistent-workers")


def test_a_gain_whose_losses_differ_is_not_recommended(monkeypatch):
    gains = {"fused-optimizer": 1.4, "bf16-autocast": 1.5, "whole-batches": 1.2}
    losses = {"fused-optimizer": 0.5, "bf16-autocast": 0.02, "whole-batches": 0.0}
    result = Imagined(monkeypatch, gains, losses=losses).tune(*gains)
    assert by_name(result)["fused-optimizer"].status == "losses differ"
    assert by_name(result)["fused-optimizer"].apart == pytest.approx(0.5)
    assert by_name(result)["bf16-autocast"].status == "gain"
    assert result.best == ("bf16-autocast", "whole-batches")
    assert "losses differ by 50.00%; 0.1% is expected" in text("x.py", result)


def test_what_fails_is_a_row_and_the_others_go_on(monkeypatch):
    result = Imagined(monkeypatch, {"whole-batches": 2.0}, failing=["compile"]).tune("compile", "whole-batches")
    assert by_name(result)["compile"] == SpeedupRow(("compile",), "failed", note="RuntimeError: no compiler")
    assert result.best == ("whole-batches",)
    assert "compile: failed: RuntimeError: no compiler" in text("x.py", result)


def test_what_needs_an_accelerator_is_not_tried_on_a_cpu_and_that_is_said(monkeypatch):
    made = Imagined(monkeypatch, {})
    result = made.tune("tf32", "pin-memory", "fused-optimizer")
    assert result.elsewhere == ("tf32", "pin-memory")
    assert set(made.asked) == {CONTROL, "fused-optimizer"}
    assert "not tried, since it matters on an accelerator only: tf32, pin-memory" in text("x.py", result)


def test_a_machine_on_which_the_script_differs_from_itself_tells_no_small_gains(monkeypatch):
    result = Imagined(monkeypatch, {CONTROL: 1.2, "fused-optimizer": 1.15, "whole-batches": 3.0}).tune(
        "fused-optimizer", "whole-batches"
    )
    assert by_name(result)["fused-optimizer"].status == "cannot tell"
    assert result.best == ("whole-batches",)
    assert "the script against itself was not even" in " ".join(text("x.py", result).split())


def test_less_memory_is_reported_for_what_is_for_memory(monkeypatch):
    gains = {"activation-checkpointing": 0.7}
    result = Imagined(monkeypatch, gains, memory={"activation-checkpointing": 0.5}).tune(*gains)
    (row,) = result.rows
    assert (row.status, row.memory) == ("saves memory", 0.5)
    assert result.best == ()
    assert "truestep.recompute(model, Block)" in text("x.py", result)


def test_larger_batches_are_compared_by_samples_and_never_combined(monkeypatch):
    result = Imagined(monkeypatch, {"larger-batch": 0.8, "fused-optimizer": 1.2}).tune(
        "larger-batch", "fused-optimizer"
    )
    assert by_name(result)["larger-batch"].judged.ratio == pytest.approx(1.6)
    assert result.best == ("fused-optimizer",)


def test_a_script_that_is_too_short_is_reported(monkeypatch):
    made = Imagined(monkeypatch, {}, whole=True)
    run = made.run

    def short(variant):
        outcome = run(variant)
        return replace(outcome, results={"survey": outcome.results["survey"] | {"all_steps": 12, "steps": 7}})

    made.run = short
    with pytest.raises(NoExperiment, match="after 12 steps"):
        made.tune("fused-optimizer")


def test_ctrl_c_leaves_what_was_measured(monkeypatch):
    made = Imagined(monkeypatch, {"whole-batches": 2.0})
    turns = made.turns

    def interrupted(bench, plain, changed, plan):
        if changed.name == "fused-optimizer":
            raise KeyboardInterrupt
        return turns(bench, plain, changed, plan)

    monkeypatch.setattr(module, "take_turns", interrupted)
    result = made.tune("whole-batches", "fused-optimizer")
    assert result.interrupted
    assert by_name(result)["whole-batches"].status == "gain"
    assert "interrupted: these are the measurements up to then" in text("x.py", result)


def test_what_applies_to_nothing_is_found_in_one_run_and_not_timed(monkeypatch):
    made = Imagined(monkeypatch, {}, idle=["whole-batches", "channels-last"])
    result = made.tune("whole-batches", "channels-last", "inference-mode")
    assert made.asked == [CONTROL, "inference-mode"]
    assert "does not apply here: whole-batches, channels-last" in text("x.py", result)


def test_a_budget_that_is_over_leaves_out_and_says_so(monkeypatch):
    made = Imagined(monkeypatch, {})
    result = tune(Bench(Target("x.py"), None), ["fused-optimizer", "compile"], budget_s=0)
    assert result.left_out == ["fused-optimizer", "compile"]
    assert made.asked == [CONTROL]
    said = text("x.py", result)
    assert "the budget was spent: fused-optimizer, compile" in said
    assert "cannot tell: the budget was spent before any of 2 speed-ups was tried; --budget" in said
    assert "faster" not in said, "changes that were not tried are not mentioned"
    assert result.enough_s > 0


@pytest.mark.parametrize(
    ("rows", "left", "said"),
    [
        ([SpeedupRow(("compile",), "no gain")], [], "the 1 speed-up tried makes this script no faster"),
        ([SpeedupRow(("compile",), "no gain")], ["tf32"], "1 was not tried: --budget 40 would be about enough"),
        ([SpeedupRow(("compile",), "does not apply")], [], "no speed-up applies"),
        ([SpeedupRow(("compile",), "does not apply")], ["tf32"], "cannot tell: the budget was spent before any of 1"),
    ],
)
def test_that_nothing_gains_is_said_of_what_was_tried(rows, left, said):
    found = Tuned(step_s=1.0, phases={"data": 1.0}, rows=rows, left_out=left, enough_s=31.0)
    assert said in " ".join(text("x.py", found).split())


def test_speed_ups_of_the_phase_that_costs_most_are_tried_first(monkeypatch):
    from truestep.experiments.tune.trial_order import in_order

    names = ["compile", "fused-optimizer", "samples-once", "inference-mode"]
    assert in_order(names, {"evaluation": 4.0, "optimizer": 3.0, "data": 2.0, "backward": 1.0}) == [
        "inference-mode",
        "fused-optimizer",
        "samples-once",
        "compile",
    ]
    made = Imagined(monkeypatch, {})
    made.tune("compile", "samples-once")
    assert made.asked == [CONTROL, "samples-once", "compile"]


@pytest.mark.parametrize(
    ("low", "high", "even"), [(0.97, 1.04, True), (0.84, 0.98, False), (0.99, 1.3, False), (1.1, 1.2, False)]
)
def test_a_script_that_differs_from_itself_either_way_is_reported(low, high, even):
    control = SpeedupRow((CONTROL,), "no gain", Judged((low + high) / 2, low, high, SpeedVerdict.EQUAL))
    said = text("x.py", Tuned(step_s=0.01, control=control))
    assert ("the script against itself was not even" in " ".join(said.split())) is not even
    assert said.splitlines()[3].endswith(" even" if even else "not even")


def test_the_report_is_a_table_with_lines_to_write():
    gain = SpeedupRow(("whole-batches",), "gain", Judged(3.1, 2.9, 3.3, SpeedVerdict.GAIN), 1.02, 0.0, 0.0)
    result = Tuned("cpu", 0.004, {"data": 0.003, "other": 0.001}, 2**28, [gain], best=("whole-batches",))
    said = text("train.py", result)
    assert said.startswith("train.py on cpu: 4 ms a step: data 75%, other 25%; 256 MiB at most")
    assert "whole-batches  3.10x  2.90-3.30x    102%         equal  gain" in said
    assert "whole-batches gives 3.10x (2.90x to 3.30x)" in said
    assert "    # whole-batches\n    loader = run.loader(" in said


# --- real processes ---


@pytest.mark.slow
def test_nothing_is_not_a_gain_and_workers_are_where_samples_wait(folder):
    names = [CONTROL, "loader-workers"]
    result = tune(bench(folder, "0.004", "100000"), names, budget_s=600)
    assert by_name(result)[CONTROL].status != "gain"
    assert result.control.status != "gain"
    assert by_name(result)["loader-workers"].status == "gain"
    assert by_name(result)["loader-workers"].apart == 0
    assert result.best == ("loader-workers",)


@pytest.mark.slow
def test_the_command_measures_and_touches_nothing(folder):
    command = [sys.executable, "-m", "truestep", "tune", "--only", "fused-optimizer,loader-workers", "--budget", "600"]
    command += ["--format", "json", "train.py", "0", "100000", "unpicklable"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    rows = {row["names"][0]: row for row in report["rows"]}
    assert rows["loader-workers"]["status"] == "failed"
    assert "ZeroDivisionError" in rows["loader-workers"]["note"]
    assert rows["fused-optimizer"]["status"] in ("gain", "no gain", "cannot tell", "slower")
    assert report["phases_s"]["data"] > 0
    assert [path.name for path in folder.iterdir()] == ["train.py"]


def test_the_list_needs_no_script():
    command = [sys.executable, "-m", "truestep", "tune", "--list"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "fused-optimizer" in done.stdout
    assert "nothing" not in done.stdout.split()
