"""Each seam alone: the attributes of torch that it needs, exact restoring, and passes that are counted once."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
import torch.autograd
import torch.utils.data.dataloader as dataloader
from torch import nn, serialization
from torch.amp.grad_scaler import GradScaler
from torch.optim import Optimizer
from torch.optim import optimizer as optimizers
from torch.utils.checkpoint import checkpoint

from truestep import seams
from truestep.seams import patch
from truestep.seams.code import weaving
from truestep.seams.saving import Function

Install = Callable[[ExitStack], object]
OWNERS: list[Any] = [torch.autograd, nn.Module, Optimizer, GradScaler, dataloader.DataLoader]
OWNERS += [dataloader._BaseDataLoaderIter, optimizers, serialization]
TABLES = [optimizers._global_optimizer_pre_hooks, optimizers._global_optimizer_post_hooks]


def ignore(*args: Any) -> None:
    pass


INSTALLS: dict[str, Install] = {
    "backward": lambda stack: seams.backward.watch(stack, before=ignore, after=ignore),
    "step": lambda stack: seams.step.watch(stack, before=ignore, after=ignore),
    "zero_grad": lambda stack: seams.zero_grad.watch(stack, optimizer=ignore, module=ignore),
    "module_call": lambda stack: seams.module_call.wrap(stack, enter=ignore, leave=ignore, depth=Depth()),
    "loader": lambda stack: seams.loader.watch(stack, drew=ignore, ended=ignore),
    "loader, iter": lambda stack: seams.loader.wrap_iter(stack, iter),
    "saving": lambda stack: seams.saving.wrap(stack, "_save", ignore),
    "scaler": lambda stack: seams.scaler.scales(stack),
}


class Depth:
    inside = 0


def state() -> list[dict[Any, Any]]:
    return [dict(vars(owner)) for owner in OWNERS] + [dict(table) for table in TABLES]


def changed(before: list[dict[Any, Any]]) -> list[Any]:
    missing = object()
    return [
        name
        for one, two in zip(before, state(), strict=True)
        for name in one.keys() | two.keys()
        if one.get(name, missing) is not two.get(name, missing)
    ]


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as made:
        yield made


def loss() -> torch.Tensor:
    return nn.Linear(3, 1)(torch.ones(2, 3)).sum()


@pytest.mark.parametrize("name", INSTALLS)
class TestEverySeam:
    def test_is_restored_exactly(self, name: str) -> None:
        before = state()
        with ExitStack() as stack:
            INSTALLS[name](stack)
            assert changed(before)
        assert changed(before) == []
        assert patch._layers == {}

    def test_is_restored_when_uninstalled_in_any_order(self, name: str) -> None:
        before = state()
        first, second = ExitStack(), ExitStack()
        INSTALLS[name](first)
        INSTALLS[name](second)
        first.close()
        assert changed(before)
        second.close()
        assert changed(before) == []


class TestTorchHas:
    """Needs of each seam: the test that fails names the seam that a new torch has broken."""

    def test_for_backward(self) -> None:
        names = list(inspect.signature(torch.autograd.graph._engine_run_backward).parameters)
        assert names[0] == "t_outputs"
        seen: list[Any] = []

        def wrapper(roots: Any, *args: Any, **kwargs: Any) -> Any:
            seen.append((args[1:3], kwargs["accumulate_grad"]))
            return original(roots, *args, **kwargs)

        with ExitStack() as stack:
            original = seams.backward.wrap(stack, wrapper)
            loss().backward(retain_graph=True, create_graph=False)
            x = torch.ones(1, requires_grad=True)
            torch.autograd.grad(x * 2, x, create_graph=True)
        assert seen == [((True, False), True), ((True, True), False)]

    def test_for_step(self) -> None:
        assert callable(optimizers.register_optimizer_step_pre_hook)
        assert callable(optimizers.register_optimizer_step_post_hook)

    def test_for_zero_grad(self) -> None:
        assert list(inspect.signature(Optimizer.zero_grad).parameters) == ["self", "set_to_none"]
        assert list(inspect.signature(nn.Module.zero_grad).parameters) == ["self", "set_to_none"]

    def test_for_module_call(self) -> None:
        assert weaving.weave(nn.Module._wrapped_call_impl, {}) is not None

    def test_for_loader(self) -> None:
        base = dataloader._BaseDataLoaderIter
        assert all(name in vars(base) for name in ("__next__", "_next_index", "_reset"))
        assert not any("__next__" in vars(kind) for kind in base.__subclasses__())

    def test_for_saving(self) -> None:
        names = {name: list(inspect.signature(getattr(serialization, name)).parameters) for name in get_args(Function)}
        assert names["_save"][:2] == ["obj", "zip_file"]
        assert names["_legacy_save"][:2] == ["obj", "f"]
        assert len(names["_open_zipfile_writer"]) == 1

    def test_for_scaler(self) -> None:
        assert {"scale", "unscale_", "_unscale_grads_", "step", "update"} <= vars(GradScaler).keys()

    def test_for_tracing(self) -> None:
        from torch._C._dynamo import eval_frame

        assert hasattr(torch, "_disable_dynamo")
        assert hasattr(eval_frame, "set_code_exec_strategy")

    def test_for_wrappers(self) -> None:
        model = nn.Linear(2, 2)
        assert seams.wrappers.is_compiled(torch.compile(model, backend="eager"))


class TestBackward:
    def test_counts_each_outermost_pass_once(self, stack: ExitStack) -> None:
        seen: list[str] = []
        seams.backward.watch(stack, before=lambda _: seen.append("before"), after=lambda _: seen.append("after"))
        layer = nn.Linear(3, 3)
        inner = checkpoint(layer, torch.ones(2, 3, requires_grad=True), use_reentrant=True)
        assert isinstance(inner, torch.Tensor)
        inner.sum().backward()
        assert seen == ["before", "after"]

    def test_leaves_out_what_makes_no_gradients(self, stack: ExitStack) -> None:
        seen: list[seams.backward.Pass] = []
        seams.backward.watch(stack, before=seen.append)
        x = torch.ones(1, requires_grad=True)
        torch.autograd.grad(x * 2, x)
        assert seen == []

    def test_tells_roots_and_flags(self, stack: ExitStack) -> None:
        seen: list[seams.backward.Pass] = []
        seams.backward.watch(stack, after=seen.append)
        one = loss()
        one.backward(retain_graph=True)
        one.backward()
        assert [(this.roots[0] is one, this.retain_graph, this.create_graph) for this in seen] == [
            (True, True, False),
            (True, False, False),
        ]

    def test_is_in_the_engine_in_hooks_only(self) -> None:
        in_engine = seams.backward.engine_state()
        seen: list[bool] = []
        x = torch.ones(1, requires_grad=True)
        x.register_hook(lambda _: seen.append(in_engine()))
        (x * 2).backward()
        assert [*seen, in_engine()] == [True, False]

    def test_a_wrapper_is_called_without_a_frame_in_between(self, stack: ExitStack) -> None:
        callers: list[str] = []

        def wrapper(*args: Any, **kwargs: Any) -> Any:
            callers.append(sys._getframe(1).f_code.co_filename)
            return original(*args, **kwargs)

        original = seams.backward.wrap(stack, wrapper)
        loss().backward()
        assert callers == [torch.autograd.__file__]


class TestStep:
    def test_sees_the_steps_of_every_optimizer(self, stack: ExitStack) -> None:
        seen: list[Any] = []
        seams.step.watch(
            stack, before=lambda o, *_: seen.append(("before", o)), after=lambda o, *_: seen.append(("after", o))
        )
        one, two = (torch.optim.SGD([nn.Parameter(torch.ones(1))], 0.1) for _ in range(2))
        one.step()
        two.step()
        assert seen == [("before", one), ("after", one), ("before", two), ("after", two)]

    def test_hooks_are_not_traced(self) -> None:
        def hook(*args: Any) -> None:
            pass

        assert seams.tracing.mark_untraced(hook) is hook
        assert hook._torchdynamo_disable is True  # type: ignore[attr-defined]


class TestSaving:
    @pytest.mark.parametrize(
        ("zipped", "names"), [(True, ["_save", "_load"]), (False, ["_legacy_save", "_legacy_load"])]
    )
    def test_sees_writes_and_reads_of_each_format(
        self, stack: ExitStack, tmp_path: Path, zipped: bool, names: list[str]
    ) -> None:
        seen: list[Any] = []

        def observed(name: Function) -> None:
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                seen.append(name)
                return original(*args, **kwargs)

            original = seams.saving.wrap(stack, name, wrapper)

        for name in get_args(Function):
            observed(name)
        torch.save({"step": 1}, tmp_path / "state.pt", _use_new_zipfile_serialization=zipped)
        assert torch.load(tmp_path / "state.pt") == {"step": 1}
        assert [name for name in seen if name != "_open_zipfile_writer"] == names
        assert ("_open_zipfile_writer" in seen) is zipped


class TestZeroGrad:
    @pytest.mark.parametrize("to_none", [True, False])
    def test_is_reported_before_gradients_are_cleared(self, stack: ExitStack, to_none: bool) -> None:
        seen: list[Any] = []
        model = nn.Linear(1, 1, bias=False)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)

        def note(owner: Any, set_to_none: bool) -> None:
            seen.append((owner, set_to_none, model.weight.grad is not None and bool(model.weight.grad.any())))

        seams.zero_grad.watch(stack, optimizer=note, module=note)
        for owner in (optimizer, model):
            model(torch.ones(1, 1)).backward()
            owner.zero_grad(to_none)
        assert seen == [(optimizer, to_none, True), (model, to_none, True)]
        assert model.weight.grad is None or not model.weight.grad.any()

    def test_two_that_nest_both_see_it_once(self, stack: ExitStack) -> None:
        seen: list[int] = []
        for number in range(2):
            seams.zero_grad.watch(stack, optimizer=lambda *_, n=number: seen.append(n))
        torch.optim.SGD([nn.Parameter(torch.ones(1))], 0.1).zero_grad()
        assert seen == [1, 0]


class TestModuleCall:
    def test_sees_outermost_calls(self, stack: ExitStack) -> None:
        seen: list[str] = []
        depth = Depth()

        def enter(module: Any, args: Any, depth_of_caller: int = 2) -> str:
            depth.inside = 1
            return type(module).__name__

        def leave(token: str, result: Any, depth_of_caller: int = 2) -> None:
            depth.inside = 0
            seen.append(token)

        assert seams.module_call.wrap(stack, enter=enter, leave=leave, depth=depth)
        nn.Sequential(nn.Linear(1, 1), nn.ReLU())(torch.ones(1, 1))
        assert seen == ["Sequential"]


class TestLoader:
    @pytest.mark.parametrize("workers", [0, 1])
    def test_sees_batches_and_the_end(self, stack: ExitStack, workers: int) -> None:
        seen: list[Any] = []
        seams.loader.watch(
            stack, drew=lambda _, batch: seen.append(batch.tolist()), ended=lambda _: seen.append("ended")
        )
        list(dataloader.DataLoader(torch.arange(3), 2, num_workers=workers))  # type: ignore[arg-type]
        assert seen == [[0, 1], [2], "ended"]


class TestScaler:
    def test_knows_the_scale_of_a_loss_that_is_alive(self, stack: ExitStack) -> None:
        scales = seams.scaler.scales(stack)
        scaled = GradScaler("cpu", init_scale=8.0).scale(torch.ones(1))
        plain = GradScaler("cpu", enabled=False).scale(torch.ones(1))
        assert (scales.get(scaled), scales.get(plain)) == (8.0, None)
        del scaled
        assert not scales


class Wrapper(nn.Module):
    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module


class TestWrappers:
    def test_look_through_what_they_name(self) -> None:
        model = nn.Linear(2, 2)
        compiled = torch.compile(model, backend="eager")
        assert seams.wrappers.uncompiled(compiled) is model
        assert seams.wrappers.uncompiled(model) is model
        assert seams.wrappers.wrapped_model(compiled) is model
        assert seams.wrappers.unwrapped(Wrapper(model)) is model
        assert seams.wrappers.wrapped_model(model) is model

    def test_a_module_with_more_children_is_no_wrapper(self) -> None:
        model = Wrapper(nn.Linear(2, 2))
        model.other = nn.Linear(2, 2)
        assert seams.wrappers.unwrapped(model) is model
        assert seams.wrappers.wrapped_model(model) is model

    def test_names_lose_the_parts_of_wrappers(self) -> None:
        assert seams.wrappers.bare("_forward_module._checkpoint_wrapped_module.head.weight") == "head.weight"
        assert seams.wrappers.uncompiled_name("_orig_mod.head.0._orig_mod.weight") == "head.0.weight"


def test_importing_the_seams_imports_no_torch() -> None:
    code = "import sys, truestep.seams; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
