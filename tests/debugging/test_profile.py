"""`profile` measures steps of a loop by phase, module and operation, and the loop is the one that it is without."""

import copy
import gzip
import io
import json
import random
import time
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from rich.console import Console
from torch import nn
from torch.utils.checkpoint import checkpoint

from truestep.debugging import profile
from truestep.debugging.timings import DATA, MODULE, STEP, Timings
from truestep.errors import BadSettings, TraceNotWritten
from truestep.testing import assert_clean

PHASES = ["data", "forward", "backward", "optimizer", "loss, other"]


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 32), nn.Dropout(0.2), nn.ReLU(inplace=True), nn.Linear(32, 4))


def train(model, batches, body=None):
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for x in batches:
        loss = F.cross_entropy(model(x), torch.arange(len(x)) % 4)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def data(count=12):
    return list(torch.randn(count, 6, 8, generator=torch.Generator().manual_seed(1)))


def hooks(model):
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())


# --- the training stays the same ---


def test_profiled_loop_is_the_loop_without():
    ours = net()
    twin = copy.deepcopy(ours)
    torch.manual_seed(2)
    with profile(ours, steps=4, skip=2) as found:
        train(ours, found.loop(data()))
    states = torch.get_rng_state(), random.getstate()
    torch.manual_seed(2)
    train(twin, data())
    assert all(torch.equal(a, b) for a, b in zip(ours.parameters(), twin.parameters(), strict=True))
    assert torch.equal(states[0], torch.get_rng_state())
    assert states[1] == random.getstate()
    assert hooks(ours) == 0
    assert found.steps == 4


def test_hooks_and_profiler_are_gone_after_the_last_step_and_after_an_exception():
    model = net()
    with profile(model, steps=2, skip=0) as found:
        for index, x in enumerate(found.loop(data())):
            assert bool(hooks(model)) is (index < 2)
            assert torch._C._autograd._profiler_enabled() is (index < 2)
            model(x)
    with pytest.raises(ValueError, match="mine"), profile(model, steps=9, skip=0) as found:
        for index, x in enumerate(found.loop(data())):
            model(x)
            if index == 2:
                raise ValueError("mine")
    assert hooks(model) == 0
    assert not torch._C._autograd._profiler_enabled()
    assert found.steps == 2  # the body that raised did not end


def test_training_is_quiet_under_supervision():
    with assert_clean():
        model = net()
        with profile(model, steps=4) as found:
            train(model, found.loop(data(20)))


# --- measurements ---


def test_every_phase_and_module_takes_part():
    model = net()
    with profile(model, steps=3, skip=1) as found:
        train(model, found.loop(data()))
    assert [phase.name for phase in found.phases] == PHASES
    assert all(phase.ms > 0 for phase in found.phases)
    assert sum(phase.ms for phase in found.phases) == pytest.approx(found.step_ms, rel=0.05)
    assert sum(phase.share for phase in found.phases) == pytest.approx(1, rel=0.05)
    modules = {module.name: module for module in found.modules}
    assert list(modules) == ["(model)", "0", "1", "2", "3"]
    assert [module.kind for module in found.modules] == ["Sequential", "Linear", "Dropout", "ReLU", "Linear"]
    assert all(module.calls == 1 for module in found.modules)
    assert all(module.forward_ms > 0 and module.backward_ms > 0 for module in found.modules)
    inner = [module for module in found.modules if module.depth == 1]
    assert sum(module.forward_ms for module in inner) <= modules["(model)"].forward_ms
    assert sum(module.backward_ms for module in inner) == pytest.approx(modules["(model)"].backward_ms)
    operations = {operation.name: operation for operation in found.operations}
    assert operations["aten::addmm"].calls == 2
    assert all(phase.device_ms is None for phase in found.phases)
    assert not any(name.startswith(("truestep", "forward", "autograd", "Optimizer")) for name in operations)


def test_time_of_the_loader_is_that_of_the_data():
    def slow():
        for x in data(5):
            time.sleep(0.02)
            yield x

    model = net()
    with profile(model, steps=2, skip=1) as found:
        train(model, found.loop(slow()))
    shares = {phase.name: phase.ms for phase in found.phases}
    assert 20 <= shares["data"] <= found.step_ms


def test_a_loop_that_ends_early_gives_the_steps_that_there_were():
    model = net()
    with profile(model, steps=10, skip=1) as found:
        train(model, found.loop(data(4)))
    assert found.steps == 3
    with profile(model, steps=10, skip=4) as found:
        train(model, found.loop(data(4)))
    assert found.steps == 0
    assert found.phases == ()
    assert "no step was measured; the first 4 are skipped" in str(found)


def test_a_loop_left_by_break_does_not_count_the_step_that_it_is_left_in():
    model = net()
    with profile(model, steps=10, skip=0) as found:
        for index, x in enumerate(found.loop(data())):
            model(x)
            if index == 3:
                break
    assert found.steps == 3


def test_several_loops_are_measured_one_after_the_other():
    model = net()
    with profile(model, steps=6, skip=1) as found:
        for _ in range(3):
            train(model, found.loop(data(3)))
    assert found.steps == 6
    assert [module.calls for module in found.modules] == [1] * 5


def test_of_loops_in_each_other_the_outer_one_is_measured():
    model = net()
    with profile(model, steps=2, skip=0) as found:
        for x in found.loop(data(3)):
            for _ in found.loop(range(4)):
                model(x)
    assert found.steps == 2
    assert found.modules[0].calls == 4


def test_a_second_profiler_at_a_time_is_refused():
    with profile(steps=2, skip=0) as outer, profile(steps=2, skip=0) as inner:
        with pytest.raises(BadSettings, match="running already"):
            for _ in outer.loop(range(3)):
                list(inner.loop(range(3)))
    assert not torch._C._autograd._profiler_enabled()


def test_a_generator_that_is_walked_over_is_closed_with_the_loop():
    closed = []

    def batches():
        try:
            yield from data()
        finally:
            closed.append(True)

    with profile(steps=2, skip=0) as found:
        for _ in found.loop(batches()):
            break
    assert closed == [True]


def test_what_checkpointing_computes_again_belongs_to_the_backward_pass():
    class Recomputed(nn.Module):
        def __init__(self):
            super().__init__()
            self.block = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 4))

        def forward(self, x):
            return checkpoint(self.block, x, use_reentrant=False)

    model = Recomputed()
    with profile(model, steps=2, skip=0) as found:
        train(model, found.loop(data(4)))
    assert all(module.calls == 1 for module in found.modules)
    assert found.phases[2].ms > 0


def test_compiled_models_say_what_is_hidden():
    torch.compiler.reset()
    model = torch.compile(net(), backend="eager")
    with profile(model, steps=2) as found:
        train(model, found.loop(data()))
    assert [(module.name, module.kind) for module in found.modules] == [("(model)", "Sequential")]
    assert "hidden: 4 modules of the model, by torch.compile" in str(found)


# --- from events by hand ---


def event(name, start, end, parent=None, *, kernels=(), number=-1, thread=1, scope=0, device="CPU"):
    made = SimpleNamespace(
        name=name,
        time_range=SimpleNamespace(start=start, end=end, elapsed_us=lambda: end - start),
        cpu_parent=parent,
        cpu_children=[],
        kernels=[SimpleNamespace(duration=duration) for duration in kernels],
        sequence_nr=number,
        thread=thread,
        scope=scope,
        device_type=f"DeviceType.{device}",
    )
    if parent is not None:
        parent.cpu_children.append(made)
    return made


def one_step(engine_thread=1):
    """1000 us: data 100, forward 200 in two modules, loss 50, backward 300 with a gap, optimizer 250."""
    step = event(STEP, 0, 1000)
    loaded = event(DATA, 0, 100, step)
    root = event(f"{MODULE}(model)", 100, 300, step)
    inner = event(f"{MODULE}fc", 150, 250, root)
    linear = event("aten::linear", 160, 240, inner, number=7)
    addmm = event("aten::addmm", 170, 230, linear, number=8, kernels=(30,))
    loss = event("aten::mse_loss", 310, 360, step, number=9)
    parent = step if engine_thread == 1 else None
    name = "autograd::engine::evaluate_function: "
    first = event(f"{name}MseLossBackward0", 400, 450, parent, number=9, thread=engine_thread)
    second = event(f"{name}AddmmBackward0", 500, 700, parent, number=8, thread=engine_thread)
    node = event("AddmmBackward0", 505, 695, second, number=8, thread=engine_thread, scope=1)
    mm = event("aten::mm", 510, 690, node, thread=engine_thread, kernels=(40, 20))
    step_ = event("Optimizer.step#SGD.step", 720, 970, step)
    add = event("aten::add_", 730, 960, step_, kernels=(5,))
    events = [step, loaded, root, inner, linear, addmm, loss, first, second, node, mm, step_, add]
    for one in events:
        spent = one.time_range.elapsed_us()
        one.self_cpu_time_total = spent - sum(child.time_range.elapsed_us() for child in one.cpu_children)
    return events


@pytest.mark.parametrize("engine_thread", [1, 2])
def test_phases_modules_and_operations_of_known_events(engine_thread):
    kinds = {f"{MODULE}(model)": "Net", f"{MODULE}fc": "Linear"}
    timings = Timings(one_step(engine_thread), kinds, [True])
    assert (timings.steps, timings.step_ms) == (1, 1.0)
    assert {phase.name: phase.ms for phase in timings.phases()} == {
        "data": 0.1,
        "forward": 0.2,
        "backward": 0.3,
        "optimizer": 0.25,
        "loss, other": pytest.approx(0.15),
    }
    assert [phase.device_ms for phase in timings.phases()] == [0.0, 0.03, 0.06, 0.005, 0.0]
    root, fc = timings.modules()
    assert (fc.name, fc.kind, fc.depth, fc.calls) == ("fc", "Linear", 1, 1)
    assert (fc.forward_ms, fc.backward_ms, fc.device_ms) == (0.1, 0.2, pytest.approx(0.09))
    assert (root.forward_ms, root.backward_ms, root.share) == (0.2, 0.2, pytest.approx(0.4))
    operations = timings.operations()
    assert [operation.name for operation in operations][:3] == ["aten::mm", "aten::addmm", "aten::add_"]
    assert (operations[0].ms, operations[0].device_ms) == (0.18, 0.06)
    assert "AddmmBackward0" not in [operation.name for operation in operations]


def test_two_backward_passes_of_a_step_are_not_one():
    step = event(STEP, 0, 1000)
    name = "autograd::engine::evaluate_function: MulBackward0"
    events = [
        step,
        event(name, 100, 150, step),
        event("Optimizer.step#SGD.step", 200, 300, step),
        event(name, 400, 450, step),
    ]
    phases = {phase.name: phase.ms for phase in Timings(events, {}, [True]).phases()}
    assert phases["backward"] == 0.1
    assert phases["optimizer"] == 0.1


def test_steps_whose_body_did_not_end_and_events_outside_do_not_count():
    events = [event(STEP, 0, 100), event("aten::add", 110, 120), event(STEP, 200, 500), event("aten::mul", 210, 220)]
    for one in events:
        one.self_cpu_time_total = one.time_range.elapsed_us()
    timings = Timings(events, {}, [True, False])
    assert timings.step_ms == 0.1
    assert timings.operations() == ()
    assert Timings(events, {}, [False, False]).phases() == ()


# --- table, trace, errors ---


def test_table_fits_into_80_columns_with_and_without_a_device():
    model = nn.ModuleDict({"name" * 20: net()})["name" * 20]
    with profile(model, steps=2, skip=0) as found:
        train(model, found.loop(data(4)))
    assert max(map(len, str(found).splitlines())) <= 80
    timings = Timings(one_step(), {}, [True])
    found.phases, found.modules, found.operations = timings.phases(), timings.modules(), timings.operations()
    lines = str(found).splitlines()
    assert max(map(len, lines)) <= 80
    assert sum("device" in line for line in lines) == 3
    wide = io.StringIO()
    Console(file=wide, width=120).print(found)
    assert "backward" in wide.getvalue()


@pytest.mark.parametrize("name", ["trace.json", "deep/er/trace.json.gz"])
def test_trace_is_written_and_holds_the_marks(tmp_path, name):
    model, path = net(), tmp_path / name
    with profile(model, steps=2, skip=0, trace=path) as found:
        train(model, found.loop(data(4)))
    text = gzip.decompress(path.read_bytes()) if name.endswith("gz") else path.read_bytes()
    names = {event.get("name") for event in json.loads(text)["traceEvents"]}
    assert {STEP, DATA, f"{MODULE}0", "aten::addmm"} <= names
    assert found.trace == path
    assert "trace:" in str(found)


def test_a_trace_that_cannot_be_written_is_a_warning_and_no_end_of_the_training(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    model = net()
    with pytest.warns(TraceNotWritten, match="was not written"):
        with profile(model, steps=2, skip=0, trace=tmp_path / "file" / "trace.json") as found:
            train(model, found.loop(data(4)))
    assert found.trace is None
    assert found.steps == 2
    with pytest.raises(ValueError, match="mine"):
        with profile(model, steps=2, skip=0, trace=tmp_path / "file" / "trace.json") as found:
            train(model, found.loop(data(4)))
            raise ValueError("mine")


def test_no_trace_is_written_where_no_step_was_measured(tmp_path):
    with profile(steps=2, skip=9, trace=tmp_path / "trace.json") as found:
        for _ in found.loop(range(4)):
            pass
    assert found.trace is None
    assert list(tmp_path.iterdir()) == []


def test_options_of_the_profiler_are_passed_on(tmp_path):
    model, path = net(), tmp_path / "trace.json"
    with profile(model, steps=1, skip=0, trace=path, record_shapes=True) as found:
        train(model, found.loop(data(2)))
    assert '"Input Dims"' in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("options", [{"steps": 0}, {"steps": 2.5}, {"skip": -1}, {"skip": True}])
def test_numbers_of_steps_that_mean_nothing_are_refused(options):
    with pytest.raises(BadSettings, match=next(iter(options))), profile(**options):
        pass
