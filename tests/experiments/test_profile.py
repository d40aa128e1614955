"""`truestep profile`: time is named by phase, line, module and operation, and nothing changes."""

import gzip
import io
import itertools
import json
import subprocess
import sys
from contextlib import ExitStack

import pytest
import torch
from rich.console import Console

from truestep.errors import NoExperiment
from truestep.experiments.instruments.all_instruments import INSTRUMENTS
from truestep.experiments.profile.bottleneck import leading, sentences, size
from truestep.experiments.profile.profile import profile, read
from truestep.experiments.reports.profile import text as of_profiled
from truestep.experiments.running.bench import Bench
from truestep.experiments.running.outcome import LOSSES, RunOutcome, Variant
from truestep.supervision.launching.launch import Target
from truestep.supervision.session import Stop

SCRIPT = """
import argparse, time
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("--wait", type=float, default=0)
parser.add_argument("--batch", type=int, default=8)
parser.add_argument("--hidden", type=int, default=8)
parser.add_argument("--heavy", type=int, default=8)
parser.add_argument("--epochs", type=int, default=1000)
parser.add_argument("--accumulate", type=int, default=1)
parser.add_argument("--workers", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(0)


class Samples(Dataset):
    def __len__(self):
        return 8 * args.batch

    def __getitem__(self, index):
        time.sleep([args.wait][0])  # the slow line
        return torch.randn(8), index % 4


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.small = nn.Linear(8, 8)
        self.heavy = nn.Sequential(nn.Linear(8, args.heavy), nn.ReLU(), nn.Linear(args.heavy, args.heavy))
        self.head = nn.Linear(args.heavy, 4)

    def forward(self, x):
        return self.head(self.heavy(self.small(x)))


def main():
    loader = DataLoader(Samples(), batch_size=args.batch, num_workers=args.workers)
    model = Net()
    spare = nn.Embedding(args.hidden, 64)  # large for the optimizer, small for the model
    optimizer = torch.optim.Adam([*model.parameters(), *spare.parameters()], foreach=False)
    for epoch in range(args.epochs):
        for index, (x, y) in enumerate(loader):
            loss = F.cross_entropy(model(x), y) + 0 * spare(y).sum()
            loss.backward()
            if (index + 1) % args.accumulate == 0:
                optimizer.step()
                optimizer.zero_grad()


main()
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "train.py").write_text(SCRIPT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def profiled(folder, *arguments, script="train.py", **options):
    return profile(Bench(Target(script, arguments), None, folder=folder), **{"steps": 8, "warmup": 2} | options)


def line_of(folder, text, script="train.py"):
    lines = (folder / script).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def program(folder, text, **options):
    (folder / "other.py").write_text(text)
    return profiled(folder, script="other.py", **options)


@pytest.mark.program
def test_a_slow_data_set_is_named_with_its_line_and_the_trace_is_written(folder):
    trace = folder / "traces" / "trace.json.gz"
    found = profiled(folder, "--wait", "0.004", trace=trace)
    assert max(found.phases, key=lambda phase: phase.ms).name == "data"
    assert sum(phase.ms for phase in found.phases) == pytest.approx(found.step_ms)
    assert sum(phase.share for phase in found.phases) == pytest.approx(1)
    assert (found.steps, found.warmup, found.batches) == (8, 2, 1)
    line = leading(found, "data")
    assert line is not None
    assert line.path == str(folder / "train.py")
    assert (line.line, line.function) == (line_of(folder, "the slow line"), "Samples.__getitem__")
    assert line.outer == (str(folder / "train.py"), line_of(folder, "in enumerate(loader)"))
    said = sentences(found, str(folder))[0]
    assert f"waits for data, most of it in line {line.line} of train.py, Samples.__getitem__" in said, said
    with gzip.open(trace, "rt") as file:
        names = {event.get("name") for event in json.load(file)["traceEvents"]}
    assert {"aten::addmm", "forward: model", "forward: model.heavy.0"} <= names
    assert sorted(path.name for path in folder.iterdir()) == ["traces", "train.py"]


@pytest.mark.slow
def test_a_heavy_layer_is_named(folder):
    found = profiled(folder, "--heavy", "1200", "--batch", "256")
    most = max(found.modules, key=lambda module: module.own_forward_ms + module.own_backward_ms)
    assert most.name == "model.heavy.2"
    assert most.backward_ms > 0
    assert any("model.heavy.2 (Linear)" in said for said in sentences(found)), sentences(found)
    by_name = {module.name: module for module in found.modules}
    assert set(by_name) == {
        "model", "model.small", "model.heavy", "model.heavy.0", "model.heavy.1", "model.heavy.2", "model.head", "spare",
    }  # fmt: skip
    inner = sum(by_name[f"model.{name}"].forward_ms for name in ("small", "heavy", "head"))
    assert inner + by_name["model"].own_forward_ms == pytest.approx(by_name["model"].forward_ms)
    operation = next(o for o in found.operations if o.name == "aten::addmm")
    assert operation.line == (str(folder / "train.py"), line_of(folder, "return self.head"))
    assert "1200x1200" in operation.shapes
    memory = found.memory
    assert memory is not None
    assert memory.parameters == pytest.approx(4 * (1200 * 1200 + 1200 * 14), rel=0.01)
    assert memory.optimizer == pytest.approx(2 * memory.parameters, rel=0.01)
    assert memory.peak > memory.parameters + memory.optimizer
    assert "model.heavy.2" in [owner.module for owner in memory.owners[:3]]
    assert memory.growth == 0


@pytest.mark.slow
def test_an_optimizer_that_dominates_is_named(folder):
    found = profiled(folder, "--hidden", "40000")
    line = leading(found, "optimizer")
    assert line is not None
    assert line.line == line_of(folder, "optimizer.step()")
    assert any("the optimizer (Adam)" in said for said in sentences(found, str(folder))), sentences(found)


@pytest.mark.slow
def test_a_step_holds_all_batches_of_a_window_and_workers_are_reported(folder):
    found = profiled(folder, "--accumulate", "4", "--workers", "1", "--wait", "0.01", steps=4)
    assert found.batches == 4
    assert found.workers == 1
    assert any("workers, " in said and "not profiled" in said for said in sentences(found)), sentences(found)


@pytest.mark.slow
def test_losses_are_those_without_a_profile(folder):
    bench = Bench(Target("train.py"), None, folder=folder)
    looked = ("profile", {"steps": 6, "warmup": 2, "trace": False})
    with_profile = bench.run(Variant("profiled", (), (LOSSES, looked)))
    assert with_profile.how == "stopped", with_profile.said
    steps = with_profile.steps
    assert steps > 20
    plain = Bench(Target("train.py"), steps, folder=folder).run(Variant("plain", (), (LOSSES,)))
    assert plain.losses == with_profile.losses
    assert plain.norms == with_profile.norms


COMPILED = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(16, 64), nn.Linear(64, 4)

    def forward(self, x):
        x = torch.relu(self.first(x))
        if x.sum().item() > 1e9:  # the break
            x = x * 2
        return self.last(x)


model = Net()
compiled = torch.compile(model, backend="eager", dynamic=False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for index in range(3000):
    compiled(torch.randn(8 + index % 2, 16)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.mark.slow
@pytest.mark.cold  # a warm torch has torch._dynamo before it is imported
def test_a_graph_break_and_a_recompilation_have_their_lines_and_reasons(folder):
    found = program(folder, COMPILED)
    breaks, again = found.compiled["breaks"], found.compiled["recompiles"]
    assert len(breaks) == 1, "the observer itself breaks no graph"
    assert breaks[0]["line"] == line_of(folder, "the break", "other.py")
    assert breaks[0]["path"] == str(folder / "other.py")
    assert "Tensor.item()" in breaks[0]["reason"]
    guards = {(entry["function"], entry["guard"]) for entry in again}
    assert ("forward", "tensor 'x' size mismatch at index 0") in guards
    assert found.hidden == {"model": "torch.compile"}
    assert found.modules[0].name == "model"


GAN = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self):
        self.generator = nn.Linear(8, 64)
        self.critic = nn.Sequential(nn.Linear(64, 400), nn.ReLU(), nn.Linear(400, 1))
        self.first = torch.optim.Adam(self.critic.parameters())
        self.second = torch.optim.Adam(self.generator.parameters())

    def step(self, x):
        fake = self.generator(torch.randn(len(x), 8))
        self.first.zero_grad()
        (self.critic(fake.detach()).mean() - self.critic(x).mean()).backward()
        self.first.step()
        self.second.zero_grad()
        (-self.critic(fake).mean()).backward()
        self.second.step()

    def fit(self):
        for epoch in range(1000):
            for (x,) in DataLoader(TensorDataset(torch.randn(256, 64)), batch_size=64):
                self.step(x)


Trainer().fit()
"""


@pytest.mark.slow
def test_two_models_in_a_trainer_have_the_names_that_the_trainer_gives_them(folder):
    found = program(folder, GAN)
    names = {module.name for module in found.modules}
    assert {"self.generator", "self.critic", "self.critic.0", "self.critic.2"} <= names
    calls = {module.name: module.calls for module in found.modules}
    assert (calls["self.generator"], calls["self.critic"]) == (1, 3), "a step is one of the first optimizer"
    assert found.optimizers == ("Adam", "Adam")


CLOSURE = """
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4)
x, y = torch.randn(64, 4), torch.randn(64, 1)
kept = []


def closure():
    optimizer.zero_grad()
    loss = (model(x) - y).square().mean()
    loss.backward()
    return loss


while True:
    kept.append(optimizer.step(closure))
"""


@pytest.mark.slow
def test_a_closure_without_a_loader_is_measured_and_what_grows_is_reported(folder):
    found = program(folder, CLOSURE)
    assert not found.loaders
    assert found.phase("data").ms == 0
    assert found.phase("forward").ms > 0
    assert found.phase("backward").ms > 0
    assert found.memory is not None


@pytest.mark.slow
def test_a_template_of_the_toolkit_is_measured(folder):
    subprocess.run([sys.executable, "-m", "truestep", "new", "spiral", "lab.py"], check=True, capture_output=True)
    found = profiled(folder, script="lab.py")
    assert found.loaders
    assert found.modules[0].name == "model"
    assert found.outcome.how == "stopped"


@pytest.mark.slow
def test_a_script_that_ends_early_has_its_phases_and_says_what_is_missing(folder):
    found = profiled(folder, "--epochs", "1", steps=5, warmup=1)
    assert found.steps == 5
    assert found.memory is None
    assert found.modules == ()


@pytest.mark.slow
def test_a_script_without_steps_is_refused(folder):
    (folder / "none.py").write_text("import torch\nprint('no training here')\n")
    with pytest.raises(NoExperiment, match="without training"):
        profiled(folder, script="none.py")
    with pytest.raises(NoExperiment, match="after 8 steps, before one could be timed"):
        profiled(folder, "--epochs", "1", warmup=100)


@pytest.mark.slow
def test_the_command_prints_and_writes(folder):
    command = [sys.executable, "-m", "truestep", "profile", "--steps", "4", "--warmup", "1"]
    done = subprocess.run(
        [*command, "--trace", "t.json", "--picture", "m.svg", "train.py", "--wait", "0.004"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "waits for data" in done.stdout
    assert "time.sleep([args.wait][0])" in done.stdout
    assert "memory:" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "/truestep-" not in done.stdout
    assert json.loads((folder / "t.json").read_text())["traceEvents"]
    assert (folder / "m.svg").read_text().startswith("<svg")
    done = subprocess.run([*command, "--format", "json", "train.py"], capture_output=True, text=True, check=False)
    assert json.loads(done.stdout)["sentences"]


# --- in this process ---------------------------------------------------------------------------------------------


def looked_at(body, tmp_path):
    """Return the results of the instrument for a loop over a body, until it ends the loop."""
    instrument = INSTRUMENTS["profile"](tmp_path, "here", steps=4, warmup=1)
    with ExitStack() as stack:
        instrument.install(stack)
        with pytest.raises(Stop):
            while True:
                body()
        return instrument.results("stopped")


@pytest.mark.program
def test_what_a_model_does_in_evaluation_is_no_part_of_its_time_in_training(tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def body():
        model(torch.randn(4, 8)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        model.eval()
        with torch.no_grad():
            for _ in range(5):
                model(torch.randn(4, 8))
        model.train()

    seen = looked_at(body, tmp_path)
    assert {entry["name"]: entry["calls"] for entry in seen["modules"]} == {"model": 1, "model.0": 1, "model.1": 1}
    assert seen["profiled"]["seconds"]["evaluation"] > 0
    assert len(seen["memory"]["between"]) == 4


def test_a_module_that_can_be_no_key_is_passed_by(tmp_path):
    class Odd(torch.nn.Linear):
        def __eq__(self, other):
            return NotImplemented

        __hash__ = None

    odd, plain = Odd(4, 4), torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.1)

    def body():
        with torch.no_grad():
            odd.eval()(torch.randn(2, 4))
        plain(torch.randn(2, 4)).sum().backward()
        optimizer.step()

    assert [entry["name"] for entry in looked_at(body, tmp_path)["modules"]] == ["plain"]


def test_memory_that_a_list_keeps_grows_by_what_it_keeps(tmp_path):
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    kept = []

    def body():
        kept.append(torch.ones(1000))
        model(torch.randn(4, 8)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    seen = looked_at(body, tmp_path)
    assert [b - a for a, b in itertools.pairwise(seen["memory"]["between"])][1:] == [4000, 4000]


# --- without a script --------------------------------------------------------------------------------------------


def measured(**changes):
    """Return the results of the instrument for a run with a step of 100 ms."""
    seconds = {"data": 0.01, "forward": 0.03, "backward": 0.04, "optimizer": 0.01, "evaluation": 0.0, "other": 0.01}
    window = {"steps": 20, "seconds": seconds, "batches": 1.0, "each": [0.1] * 20}
    plain = {
        "warmup": 5, "phases": list(seconds), "timed": window, "looked": window, "profiled": window,
        "loaders": {"DataLoader": 0}, "optimizers": ["SGD"], "threads": 1, "accelerator": "", "resident": 0,
        "lines": [], "compiled": {}, "timed_compilations": 0, "models": [], "hidden": {}, "lost": "", "waited": 0.0,
    }  # fmt: skip
    return plain | changes


def window(**seconds):
    return {"steps": 20, "seconds": measured()["timed"]["seconds"] | seconds, "batches": 1.0, "each": [0.1] * 20}


def result(**changes):
    return read(measured(**changes), RunOutcome(Variant("as it is"), "stopped"))


def test_what_the_profiler_costs_is_taken_out_phase_by_phase():
    module = {
        "name": "model", "kind": "Net", "depth": 0, "calls": 1, "forward_ms": 60.0, "backward_ms": 40.0,
        "own_forward_ms": 30.0, "own_backward_ms": 0.0, "device_ms": None, "at": None,
    }  # fmt: skip
    found = result(profiled=window(forward=0.06), modules=[module])
    assert found.modules[0].forward_ms == pytest.approx(30)
    assert found.modules[0].backward_ms == pytest.approx(40)
    assert found.modules[0].share == pytest.approx(0.7)


def test_a_line_that_was_seen_too_seldom_is_not_named():
    def looks(count):
        entry = {"phase": "data", "lines": [["a.py", 3, "read"], ["a.py", 9, "<module>"]], "seconds": 0.01}
        return result(lines=[entry | {"looks": count}])

    assert leading(looks(5), "data") is None
    assert leading(looks(50), "data").line == 3
    assert leading(looks(50), "data").outer == ("a.py", 9)


def test_where_nothing_dominates_nothing_is_claimed():
    even = dict.fromkeys(measured()["timed"]["seconds"], 0.01)
    timed = {"steps": 20, "seconds": even, "batches": 1.0, "each": [0.06] * 20}
    said = sentences(result(timed=timed, looked=timed, profiled=timed))
    assert said == ["nothing dominates: the largest phase, 17% of a step, is data"]


def test_steps_that_stand_out_are_reported_and_even_ones_are_not():
    uneven = window() | {"each": [0.05] * 18 + [1.0, 1.2]}
    assert any(said.startswith("2 steps of 20 took 71%") for said in sentences(result(timed=uneven)))
    assert not any("took" in said for said in sentences(result()))


def test_a_busy_machine_is_reported_and_a_quiet_one_is_not():
    assert any(
        "this machine is busy: the script's threads waited for a processor for 35%" in said
        for said in sentences(result(waited=0.35))
    )
    assert not any("busy" in said for said in sentences(result(waited=0.05)))


def test_memory_that_grows_in_every_step_is_reported_and_other_memory_is_not():
    def grown(between):
        memory = {
            "device": "cpu", "parameters": 1000, "gradients": 0, "optimizer": 0, "peak": 10**6, "between": between,
            "curve": [1, 2], "phases": [], "at": 0.5, "at_phase": {}, "owners": [], "allocated": 0.0,
        }  # fmt: skip
        return result(memory=memory)

    assert "memory grows by 5 kB per step" in " ".join(sentences(grown([5000 * n for n in range(10)])))
    assert "leaves" not in " ".join(sentences(grown([0, 9000, 4000, 9000, 4000, 9000, 4000])))


def test_brackets_in_a_line_are_shown_and_a_trace_that_was_not_written_is_not(tmp_path):
    source = tmp_path / "a.py"
    source.write_text("values[mask], other[/end] = read()\n")
    entry = {"phase": "data", "lines": [[str(source), 1, "read"]], "seconds": 0.01, "looks": 9}
    out = io.StringIO()
    console = Console(file=out, width=80)
    console.print(of_profiled(result(lines=[entry], profiled=window() | {"steps": 0}), str(tmp_path)))
    assert "values[mask], other[/end] = read()" in out.getvalue()
    assert "trace" not in out.getvalue()
    assert "no modules, operations and memory: the script stopped" in out.getvalue()


def test_bytes_have_units():
    assert [size(amount) for amount in (0, 999, 1000, 20 * 10**9)] == ["0 B", "999 B", "1 kB", "20 GB"]
