"""`truestep plan`: the moments of a step, the memory of each strategy, and the answers for scripts and factories."""

import json

import pytest
import torch
from commands import called
from tiers import only
from torch import nn

from truestep.errors import NoExperiment, UsageError
from truestep.experiments.instruments.needs.storage_log import StorageLog
from truestep.experiments.plan.fitting import sentences
from truestep.experiments.plan.footprint import Moment, Needs, Strategy, footprint, smallest
from truestep.experiments.plan.plan import factory_target, plan
from truestep.experiments.plan.units import read_input, read_memory
from truestep.experiments.running.bench import Bench
from truestep.supervision.launching.launch import Target

MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, wide=64):
        super().__init__()
        self.tokens = nn.Embedding(100, wide)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(wide, 4 * wide), nn.ReLU(), nn.Linear(4 * wide, wide)) for _ in range(3)
        )
        self.head = nn.Linear(wide, 100)

    def forward(self, tokens):
        x = self.tokens(tokens)
        for block in self.blocks:
            x = x + block(x)
        return self.head(x)


def build():
    return Model()


def large():
    return Model(8192)


def drops():
    rates = [rate.item() for rate in torch.linspace(0, 0.1, 2)]
    model = nn.Sequential(*(nn.Sequential(nn.Linear(64, 64), nn.Dropout(rate)) for rate in rates))
    nn.init.trunc_normal_(model[0][0].weight)
    return model


def reads_values():
    class Reads(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x):
            return self.layer(x) * (2.0 if x.sum().item() > 0 else 1.0)

    return Reads()
"""
SCRIPT = """
import sys
import torch
from torch import nn
from model import build

torch.manual_seed(0)
model = build()
if "frozen" in sys.argv:
    model.tokens.requires_grad_(False)
optimizer = torch.optim.AdamW(model.parameters(), foreach=None if "plain" in sys.argv else True)
for _ in range(1 if "short" in sys.argv else 20):
    tokens = torch.randint(0, 100, (4, 32))
    optimizer.zero_grad(set_to_none="keep" not in sys.argv)
    if "crash" in sys.argv:
        raise MemoryError("no more memory")
    nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()).backward()
    optimizer.step()
"""
COUNT = 100 * 64 + 3 * (2 * 4 * 64 * 64 + 5 * 64) + 64 * 100 + 100
"""Parameters of the model."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "train.py").write_text(SCRIPT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def by_script(folder, *arguments, **options):
    return plan(Bench(Target("train.py", arguments), None, folder=folder), **options)


def by_factory(folder, name, *shapes, optimizer="AdamW", dtype="", **options):
    return plan(Bench(factory_target(f"model:{name}", shapes, optimizer, dtype), None, folder=folder), **options)


def needs(**changes):
    plain = {"parameters": 400, "gradients": 400, "optimizer": 800, "buffers": 0, "held": 0, "activations": 300}
    moments = {"passes": (Moment(0, 300, 0), Moment(400, 0, 50)), "updates": (Moment(400, 0, 400),)}
    blocks = {"largest_block": 40, "outside": 20, "block_gradients": 40}
    return Needs(**(plain | moments | blocks | changes))


# --- without processes -----------------------------------------------------------------------------------------------


def logged(*, before=()):
    """A step: an activation of 100, a gradient of 30 made from it with 5 of workspace, an update with a copy of 30."""
    log = StorageLog()
    for size in before:
        log.allocate(size)
    log.mark("start")
    activation = log.allocate(100)
    log.mark("backward")
    workspace, gradient = log.allocate(5), log.allocate(30)
    log.release(activation)
    log.release(workspace)
    log.mark("backward end")
    log.mark("update")
    log.release(log.allocate(30))
    log.mark("update end")
    return log, gradient


def test_moments_of_a_step_divide_gradients_activations_and_the_rest():
    log, gradient = logged()
    found = log.moments({gradient}, ())
    assert found["passes"] == [(30, 100, 5)]
    assert found["updates"] == [(30, 0, 30)]
    assert (found["activations"], found["before"]) == (100, 0)


def test_memory_that_lives_from_step_to_step_is_left_out_if_it_is_fixed():
    log, gradient = logged(before=[7, 1000])
    found = log.moments({gradient}, {1})
    assert found["before"] == 7
    assert found["passes"] == [(30, 107, 5)]


def test_gradients_that_are_kept_count_from_the_begin_of_the_step():
    log = StorageLog()
    gradient = log.allocate(30)
    log.mark("start")
    log.release(log.allocate(100))
    assert log.moments({gradient}, ())["passes"] == [(30, 100, 0)]


def test_the_peak_is_the_largest_sum_of_one_moment():
    single = footprint(needs(), Strategy.SINGLE)
    assert single.peak == 400 + 800 + 400 + 400, "in the update, with its copy"
    assert footprint(needs(updates=()), Strategy.SINGLE).peak == 400 + 800 + 400 + 50, "not 300 of activations too"
    assert footprint(needs(updates=()), Strategy.DDP, 2).peak == 400 + 800 + 400 + 50 + 400


def test_fsdp_divides_state_and_gathers_blocks():
    four = footprint(needs(), Strategy.FSDP, 4)
    assert (four.parameters, four.gradients, four.optimizer, four.activations) == (100, 100, 200, 300)
    assert four.exchange == 20 + 2 * 40 + 2 * 40
    assert four.peak == 100 + 200 + 300 + four.exchange
    assert footprint(needs(buffers=1000), Strategy.FSDP, 4).peak == four.peak + 1000, "buffers are not divided"


def test_the_smallest_number_of_devices_is_the_first_that_fits():
    each = [footprint(needs(), Strategy.FSDP, count).peak for count in range(2, 65)]
    assert each == sorted(each, reverse=True)
    for memory in (each[0], each[5], each[5] - 1, each[-1]):
        count = smallest(needs(), memory, most=64)
        assert count is not None
        assert each[count - 2] <= memory
        assert count == 2 or each[count - 3] > memory
    assert smallest(needs(), 400) is None


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "0", "80 MB", "many"])
def test_memory_that_is_no_size_is_refused(text):
    with pytest.raises(UsageError, match="--memory must be the memory of one device in GB"):
        read_memory(text)


@pytest.mark.parametrize("text", ["", "8,4", "8x", "x8", "0x4", "8x-4", ":int64"])
def test_inputs_without_a_shape_are_refused(text):
    with pytest.raises(UsageError, match="--input must be sizes joined by x"):
        read_input(text)


def test_inputs_of_unknown_types_are_refused():
    with pytest.raises(UsageError, match="unknown type, got 'long'"):
        read_input("8x4:long")


# --- scripts and factories --------------------------------------------------------------------------------------------


@pytest.mark.program
def test_a_script_and_its_factory_have_the_same_plan(folder):
    script = by_script(folder)
    factory = by_factory(folder, "build", "4x32:int64")
    for found in (script, factory):
        assert found.types == {"float32": (COUNT, 4 * COUNT)}
        assert (found.trained, found.optimizers, found.models) == (COUNT, ("AdamW",), ("Model",))
        assert found.needs.gradients == 4 * COUNT
        assert found.needs.optimizer == pytest.approx(8 * COUNT, rel=1e-3), "two values for each parameter"
        assert found.blocks == (3, "Sequential")
        assert found.needs.largest_block == 4 * (2 * 4 * 64 * 64 + 5 * 64)
        assert found.needs.outside == 4 * (100 * 64 + 64 * 100 + 100)
    assert (script.measured_on, factory.measured_on) == ("cpu", "")
    for one, other in zip(script.rows, factory.rows, strict=True):
        assert one.peak == pytest.approx(other.peak, rel=0.02)
        assert one.activations == pytest.approx(other.activations, rel=0.02)
    kept = 4 * 4 * 32 * (64 * 4 + 3 * 256 + 2 * 100)  # inputs of layers, hidden values, scores and their log-softmax
    assert factory.needs.activations == pytest.approx(kept, rel=0.2)


@pytest.mark.program
def test_what_a_script_changes_shows_in_its_needs(folder):
    plain = by_script(folder, "frozen", "plain")
    assert plain.trained == COUNT - 6400
    assert plain.needs.gradients == 4 * (COUNT - 6400)
    assert plain.at_once
    assert plain.needs.updates[0].working == plain.needs.gradients, "the copy that an update on a GPU needs"
    kept = by_script(folder, "keep")
    assert min(moment.gradients for moment in kept.needs.passes) == 4 * COUNT, "gradients are there before the backward"


@pytest.mark.program
def test_a_model_larger_than_this_machine_is_planned_from_shapes(folder):
    found = by_factory(folder, "large", "4x32:int64", dtype="bfloat16", optimizer="SGD", memory=read_memory("5GB"))
    assert set(found.types) == {"bfloat16"}
    assert found.needs.parameters > 3e9
    assert found.needs.optimizer == 0
    assert found.rows[0].peak > 6e9
    assert sentences(found)[0].startswith("it does not fit on one device of 5 GB: it needs 6.")
    assert "; FSDP2 fits on " in sentences(found)[0]


@pytest.mark.parametrize("optimizer", only(["RMSprop"], ["Adafactor", "ASGD", "NAdam", "RAdam", "RMSprop"]))
def test_an_optimizer_steps_without_values_and_has_its_state(folder, optimizer):
    found = by_factory(folder, "drops", "4x64", optimizer=optimizer)
    linear = nn.ModuleList(nn.Linear(64, 64) for _ in range(2))
    real = getattr(torch.optim, optimizer)(linear.parameters())
    sum(parameter.sum() for parameter in linear.parameters()).backward()
    real.step()
    values = [value for state in real.state.values() for value in state.values()]
    size = sum(value.untyped_storage().nbytes() for value in values if isinstance(value, torch.Tensor))
    assert found.optimizers == (optimizer,)
    assert found.needs.optimizer == size


@pytest.mark.program
def test_recomputed_blocks_need_fewer_activations(folder):
    plain = by_factory(folder, "build", "64x32:int64")
    again = by_factory(folder, "build", "64x32:int64", changes=["activation-checkpointing"])
    assert again.changes == {"activation-checkpointing": 3}
    assert again.needs.activations < 0.6 * plain.needs.activations


@pytest.mark.program
def test_a_script_that_cannot_be_measured_is_an_error_with_its_remedy(folder):
    with pytest.raises(NoExperiment, match="finished after 1 of 3 optimizer steps"):
        by_script(folder, "short")
    with pytest.raises(NoExperiment, match="ran out of memory") as raised:
        by_script(folder, "crash")
    assert "truestep plan --input SHAPE MODULE:FACTORY" in raised.value.remedy
    (folder / "idle.py").write_text("import torch\n")
    with pytest.raises(NoExperiment, match="no optimizer took a step"):
        plan(Bench(Target("idle.py"), None, folder=folder))
    (folder / "by_hand.py").write_text(
        "import torch\nw = torch.ones(2, requires_grad=True)\n(w * w).sum().backward()\n"
    )
    with pytest.raises(NoExperiment, match="no optimizer of torch took a step, although losses were backpropagated"):
        plan(Bench(Target("by_hand.py"), None, folder=folder))


@pytest.mark.program
def test_a_factory_that_cannot_be_planned_is_an_error_with_its_remedy(folder):
    with pytest.raises(UsageError, match="model has no function or class 'biuld'") as raised:
        by_factory(folder, "biuld", "4x32:int64")
    assert raised.value.remedy == "write model:build"
    with pytest.raises(UsageError, match="reads values in its forward pass"):
        by_factory(folder, "reads_values", "3x4")


@pytest.mark.program
def test_the_report_answers_in_a_table_of_80_columns(folder, capfd, monkeypatch):
    done = called(capfd, monkeypatch, "plan", "--memory", "0.002GB", "--devices", "4", "train.py")
    assert done.code == 0, done.err
    assert all(len(line) <= 80 for line in done.out.splitlines())
    assert "█ parameters ▓ optimizer ▒ gradients ▚ exchange ░ activations and temporary" in done.out
    assert done.out.startswith(f"plan: train.py, {COUNT:,} parameters in float32, AdamW")
    names = [line.split("  ")[0] for line in done.out.splitlines() if "MB" in line or "kB" in line]
    assert names[:3] == ["single", "DDP", "FSDP2 on 4"]
    assert "- it does not fit on one device of 0.002 GB: it needs 2." in done.out


@pytest.mark.program
def test_the_json_has_the_parts_of_each_peak(folder, capfd, monkeypatch):
    done = called(capfd, monkeypatch, "plan", "--format", "json", "--input", "4x32:int64", "model:build")
    found = json.loads(done.out)
    assert found["measured_on"] is None
    assert [row["strategy"] for row in found["strategies"]] == ["single", "DDP", "FSDP2", "FSDP2", "FSDP2"]
    for row in found["strategies"]:
        assert sum(row["at_peak"].values()) == row["peak"]
    assert found["devices"][0]["name"] == "16 GB"
    assert found["devices"][0]["fits"] == ["single", "DDP", "FSDP2 on 2", "FSDP2 on 4", "FSDP2 on 8"]


@pytest.mark.parametrize(
    ("arguments", "happened"),
    [
        (["--input", "8", "train.py"], "--input is for a model from a factory"),
        (["model:build"], "--input is missing"),
        (["model:build", "--input", "8"], "a factory takes no arguments"),
        (["--memory", "big", "train.py"], "--memory must be"),
    ],
)
def test_wrong_use_is_refused_before_anything_runs(folder, capfd, monkeypatch, arguments, happened):
    done = called(capfd, monkeypatch, "plan", *arguments)
    assert done.code == 2
    assert happened in done.err
    assert "run 1" not in done.err
