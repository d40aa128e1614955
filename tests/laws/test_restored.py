"""Law 2: every patch is undone exactly, also after errors and in any order of the sessions' ends."""

from __future__ import annotations

import itertools
import multiprocessing.process
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.utils.clip_grad
import torch.utils.data.dataloader
from torch import nn, serialization
from torch.amp import grad_scaler
from torch.jit import _builtins
from torch.nn.modules import module as modules
from torch.optim import lr_scheduler
from torch.optim import optimizer as optimizers

from truestep.errors import UsageError
from truestep.probes import Probe, Scene, all_probes
from truestep.probes.functions.probe import FunctionProbe
from truestep.seams import patch
from truestep.supervision import Session

_builtins._get_builtin_table()

Snapshot = dict[str, dict[str, Any]]
OWNERS: dict[str, Any] = {
    "torch.Tensor": torch.Tensor,
    "torch": torch,
    "torch._C": torch._C,
    "torch.utils": torch.utils,
    "torch.autograd": torch.autograd,
    "torch.autograd.graph": torch.autograd.graph,
    "torch._C._nn": torch._C._nn,
    "torch.nn.functional": nn.functional,
    "clip_grad": torch.nn.utils.clip_grad,
    "serialization": serialization,
    "grad_scaler": grad_scaler,
    "GradScaler": grad_scaler.GradScaler,
    "modules": modules,
    "optimizers": optimizers,
    "lr_scheduler": lr_scheduler,
    "dataloader": torch.utils.data.dataloader,
    "DataLoader": torch.utils.data.DataLoader,
    "_builtins": _builtins,
    "BaseProcess": multiprocessing.process.BaseProcess,
    "CUDAGraph": torch.cuda.CUDAGraph,
    "DistributedDataParallel": nn.parallel.DistributedDataParallel,
    "ProcessGroup": torch.distributed.ProcessGroup,
    "export": torch.export,
    "jit": torch.jit,
    "ScriptModule": torch.jit.ScriptModule,
    "RecursiveScriptModule": torch.jit.RecursiveScriptModule,
    "random": random,
    "numpy.random": np.random,
}
OWNERS |= {f"iterator {cls.__name__}": cls for cls in torch.utils.data.dataloader._BaseDataLoaderIter.__subclasses__()}
OWNERS["iterator base"] = torch.utils.data.dataloader._BaseDataLoaderIter
OWNERS |= {f"optim {n}": c for n, c in vars(torch.optim).items() if isinstance(c, type)}
OWNERS |= {f"schedule {n}": c for n, c in vars(lr_scheduler).items() if isinstance(c, type)}
OWNERS |= {f"distribution {n}": c for n, c in vars(torch.distributions).items() if isinstance(c, type)}
OWNERS |= {f"nn {n}": c for n, c in vars(nn).items() if isinstance(c, type)}
TABLES = {
    "jit builtins": lambda: _builtins._builtin_table,
    **{
        f"{owner.__name__}.{name}": (lambda owner=owner, name=name: getattr(owner, name))
        for owner in (modules, optimizers)
        for name in vars(owner)
        if name.startswith("_global") and isinstance(getattr(owner, name), dict)
    },
}


def snapshot() -> Snapshot:
    """Return every attribute of everything that a probe might touch, and the hooks and tables that it might fill."""
    taken = {name: dict(vars(owner)) for name, owner in OWNERS.items()}
    taken |= {name: dict(table() or {}) for name, table in TABLES.items()}
    return taken


def differences(before: Snapshot, after: Snapshot) -> list[str]:
    missing = object()
    return [
        f"{owner}.{name}"
        for owner in before
        for name in before[owner].keys() | after[owner].keys()
        if before[owner].get(name, missing) is not after[owner].get(name, missing)
    ]


@contextmanager
def restored() -> Iterator[Snapshot]:
    before = snapshot()
    yield before
    assert differences(before, snapshot()) == []
    assert patch._layers == {}


def train() -> None:
    """Touch every seam, with subclasses and late classes too."""
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.1), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    schedule = lr_scheduler.SequentialLR(
        optimizer, [lr_scheduler.ConstantLR(optimizer), lr_scheduler.StepLR(optimizer, 2)], milestones=[2]
    )
    scaler = torch.amp.GradScaler("cpu")
    data = torch.utils.data.TensorDataset(torch.randn(8, 4), torch.randint(0, 2, (8,)))
    for x, y in torch.utils.data.DataLoader(data, batch_size=4):
        optimizer.zero_grad()
        scaler.scale(nn.functional.cross_entropy(model(x), y)).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        schedule.step()
    model.eval().load_state_dict(model.state_dict())


train()


@pytest.mark.parametrize("probe", all_probes(), ids=lambda probe: probe.__name__)
class TestEveryProbe:
    def test_changes_something_and_restores_it(self, probe: type[Probe]) -> None:
        with restored() as before:
            with ExitStack() as stack:
                probe(Scene(torch)).install(stack)
                # The seam of the other one is the program's own code: tests/probes/test_function_models.py
                assert differences(before, snapshot()) or probe is FunctionProbe
                train()

    def test_restores_after_a_raise(self, probe: type[Probe]) -> None:
        with restored():
            with pytest.raises(ZeroDivisionError), ExitStack() as stack:
                probe(Scene(torch)).install(stack)
                train()
                raise ZeroDivisionError

    def test_restores_when_installed_twice(self, probe: type[Probe]) -> None:
        with restored():
            with ExitStack() as stack:
                one = probe(Scene(torch))
                one.install(stack)
                one.install(stack)
                train()

    @pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
    def test_restores_in_any_order(self, probe: type[Probe], order: tuple[int, ...]) -> None:
        with restored():
            stacks = [ExitStack() for _ in order]
            for stack in stacks:
                probe(Scene(torch)).install(stack)
            for number in order:
                stacks[number].close()
                train()


def _raises() -> None:
    with pytest.raises(KeyError), Session():
        train()
        raise KeyError


def _interrupted() -> None:
    with pytest.raises(KeyboardInterrupt), Session():
        train()
        raise KeyboardInterrupt


def _nested() -> None:
    with Session() as outer:
        with Session() as inner:
            train()
        train()
    assert (inner.steps, outer.steps) == (2, 4)


def _entered_twice() -> None:
    session = Session()
    with session:
        with session:
            train()
        train()
    assert session.steps == 4
    assert session.how == "finished"


def _entered_again() -> None:
    session = Session()
    with session:
        train()
    with pytest.raises(UsageError, match="over"), session:
        pass


def _started_and_stopped_twice() -> None:
    session = Session()
    session.start()
    session.start()
    train()
    assert session.stop() is session.stop()


def _overlapping() -> None:
    first, second = Session(), Session()
    first.start()
    second.start()
    train()
    first.stop()
    train()
    second.stop()
    assert second.steps == 4


def _overlapping_three() -> None:
    for order in itertools.permutations(range(3)):
        sessions = [Session() for _ in order]
        for session in sessions:
            session.start()
        for number in order:
            sessions[number].stop()
            train()


def _failed_probe() -> None:
    class Failing(all_probes()[-1]):  # type: ignore[misc]
        def install(self, stack: ExitStack) -> None:
            super().install(stack)
            raise OSError("half way")

    session = Session()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("truestep.probes.all_probes", lambda: [*all_probes(), Failing])
        with session:
            train()
    assert len(session.stop().internal_errors) == 1


@pytest.mark.parametrize(
    "use",
    [
        _raises, _interrupted, _nested, _entered_twice, _entered_again, _started_and_stopped_twice, _overlapping,
        pytest.param(_overlapping_three, marks=pytest.mark.program), _failed_probe,
    ],
    ids=lambda use: use.__name__.strip("_"),
)  # fmt: skip
def test_a_session_restores(use: Callable[[], None]) -> None:
    with restored():
        use()


def test_another_ones_patch_on_top_is_left_to_him() -> None:
    before = vars(nn.Module)["train"]
    session = Session()
    session.start()
    ours = nn.Module.train

    def theirs(self: Any, mode: bool = True) -> Any:
        return ours(self, mode)

    nn.Module.train = theirs  # type: ignore[method-assign]
    try:
        session.stop()
        assert vars(nn.Module)["train"] is theirs
        assert nn.Linear(1, 1).eval().training is False
    finally:
        nn.Module.train = before  # type: ignore[method-assign]
    assert patch._layers == {}


def test_an_inherited_attribute_is_inherited_again() -> None:
    class Parent:
        def method(self) -> str:
            return "parent"

    class Child(Parent):
        pass

    with ExitStack() as stack:
        before = patch.patch(stack, Child, "method", lambda self: "patched")
        assert (Child().method(), before(Child())) == ("patched", "parent")
    assert "method" not in vars(Child)


def test_a_bound_method_kept_from_a_session_still_works() -> None:
    """Functions that user code took during a session work when it is over."""
    with Session():
        model = nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        kept = [model.__call__, optimizer.zero_grad, model.train, torch.autograd.backward]
    call, zero_grad, mode, backward = kept
    mode()
    zero_grad()
    backward(call(torch.ones(1, 2)).sum())
    assert model.weight.grad is not None
