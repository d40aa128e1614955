"""Tensors that exchange their contents: torch allows it, and the states of gradients move with them."""

import gc
import weakref
from collections.abc import Callable, Iterator

import pytest
import torch
from tiers import few
from torch import nn
from torch.utils import swap_tensors

from truestep.events import Event, HandStepped, OptimizerStepped, ParametersUnchanged
from truestep.seams.refs import Ref, tensor_keys
from truestep.supervision import Session
from truestep.testing import capture_events


@pytest.fixture(autouse=True)
def _swapping() -> Iterator[None]:
    torch.manual_seed(0)
    torch.__future__.set_swap_module_params_on_conversion(True)
    yield
    torch.__future__.set_swap_module_params_on_conversion(False)


def net() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))


def loss(model: nn.Module) -> torch.Tensor:
    dtype = next(model.parameters()).dtype
    return model(torch.ones(3, 4, dtype=dtype)).pow(2).mean()


def _by_hand(model: nn.Module) -> None:
    for parameter in model.parameters():
        grad, parameter.grad = parameter.grad, None
        swap_tensors(parameter, nn.Parameter(parameter.detach().clone()))
        parameter.grad = grad
        del grad


def _gradients(model: nn.Module) -> None:
    for parameter in model.parameters():
        if (grad := parameter.grad) is not None:
            parameter.grad = None
            swap_tensors(grad, grad.clone())
            parameter.grad = grad


CONVERSIONS: dict[str, Callable[[nn.Module], object]] = {
    "double and float": lambda m: m.double().float(),
    "half": lambda m: m.half().float(),
    "to a device": lambda m: m.to("cpu"),
    "swap_tensors": _by_hand,
    "swap_tensors of gradients": _gradients,
}


def train(convert: Callable[[nn.Module], object], where: str, *, clear: bool, windows: int = 1) -> list[Event]:
    with capture_events() as events:
        model = net()
        optimizer = torch.optim.SGD(model.parameters(), 1e-3)
        for step in range(16):
            now = step in (2, 3, 9)
            if clear:
                optimizer.zero_grad(set_to_none=step % 2 == 0)
            if now and where == "after clearing":
                convert(model)
            for _ in range(windows):
                loss(model).backward()
                if now and where == "before the step":
                    convert(model)
            optimizer.step()
            if now and where == "after the step":
                convert(model)
    return events


def counts(events: list[Event]) -> list[tuple[int, ...]]:
    return [
        (e.observed, e.fresh, e.mixed, e.reused, e.cleared, e.absent_grad, e.by_hand)
        for e in events
        if isinstance(e, OptimizerStepped)
    ]


@pytest.mark.parametrize("convert", few(3, CONVERSIONS.values()), ids=CONVERSIONS.keys())
@pytest.mark.parametrize("where", ["after clearing", "before the step", "after the step"])
@pytest.mark.parametrize(("clear", "windows"), [(True, 1), (True, 2), (False, 1)])
def test_the_states_of_gradients_are_those_of_a_loop_without(
    convert: Callable[[nn.Module], object], where: str, clear: bool, windows: int
) -> None:
    expected = counts(train(lambda model: None, where, clear=clear, windows=windows))
    assert counts(train(convert, where, clear=clear, windows=windows)) == expected
    assert sum(mixed for _, _, mixed, *_ in expected) == 0 if clear else sum(mixed for _, _, mixed, *_ in expected) > 30


def test_conversions_are_no_steps_by_hand() -> None:
    """Gradients of several passes without an optimizer: a version counter that was replaced is not an update."""
    with capture_events() as events:
        model = net()
        for change in (model.double, model.float, lambda: _by_hand(model), lambda: model.to("cpu")):
            loss(model).backward()
            for parameter in model.parameters():
                parameter.grad = None
            loss(model).backward()
            change()
            loss(model).backward()
    assert not [event for event in events if isinstance(event, HandStepped)]


def test_updates_by_hand_are_seen_beside_conversions() -> None:
    with capture_events() as events:
        model = net()
        for _ in range(4):
            loss(model).backward()
            model.double().float()
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter -= 0.1 * parameter.grad
    assert [event.mixed for event in events if isinstance(event, HandStepped)] == [0, 1, 1, 1]


def test_the_gradients_of_two_models_go_along_when_these_exchange_their_weights() -> None:
    with capture_events() as events:
        one, two = net(), net()
        optimizers = [torch.optim.SGD(model.parameters(), 1e-3) for model in (one, two)]
        loss(two).backward()
        for optimizer in optimizers:
            optimizer.step()
        optimizers[0].zero_grad()
        loss(one).backward()
        for mine, theirs in zip(one.parameters(), two.parameters(), strict=True):
            swap_tensors(mine, theirs)
        for optimizer in optimizers:
            optimizer.step()
    steps = [event for event in events if isinstance(event, OptimizerStepped)]
    assert [(step.absent_grad, step.fresh, step.reused) for step in steps] == [
        (4, 0, 0),
        (0, 4, 0),
        (0, 0, 4),
        (0, 4, 0),
    ]


@pytest.mark.program
def test_parameters_that_keep_their_values_keep_them_in_another_form() -> None:
    with capture_events() as events:
        model, left = net(), net()
        optimizer = torch.optim.SGD(model.parameters(), 1e-3)
        for step in range(12):
            optimizer.zero_grad()
            (loss(model) + loss(left)).backward()
            optimizer.step()
            if step == 2:
                model.double()
                left.double()
    told = [event.parameters for event in events if isinstance(event, ParametersUnchanged)]
    assert len(told[-1]) == 4


def test_references_of_the_script_are_still_a_reason_to_refuse() -> None:
    with Session():
        parameter, other = nn.Parameter(torch.ones(2)), nn.Parameter(torch.zeros(2))
        optimizer = torch.optim.SGD([parameter], 0.1)
        own = weakref.ref(parameter)
        with pytest.raises(RuntimeError, match="Cannot swap t1 because it has weakref"):
            swap_tensors(parameter, other)
        with pytest.raises(RuntimeError, match="Cannot swap t2 because it has weakref"):
            swap_tensors(other, parameter)
        del own
        swap_tensors(parameter, other)
        assert parameter.tolist() == [0, 0]
        assert optimizer.param_groups[0]["params"][0] is parameter


def test_every_reference_to_a_tensor_can_be_distinguished_from_the_scripts_own() -> None:
    """Objects to which a session refers weakly can be swapped: weights, gradients, batches, outputs, states."""
    gc.collect()
    before = {id(thing) for thing in gc.get_objects() if issubclass(type(thing), torch.Tensor)}
    with Session() as session:
        samples = torch.randn(24, 4)
        model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))
        optimizer = torch.optim.SGD(model.parameters(), 1e-3)
        scaler = torch.amp.GradScaler("cpu")
        kept = [samples, model.state_dict()]
        for x in torch.utils.data.DataLoader(samples, 4):
            optimizer.zero_grad()
            out = model(x)
            made = nn.functional.cross_entropy(out, torch.zeros(4, dtype=torch.long))
            scaler.scale(made).backward()
            scaler.step(optimizer)
            scaler.update()
            kept += [x, out, made]
        tensors = [t for t in gc.get_objects() if issubclass(type(t), torch.Tensor) and id(t) not in before]
        found = [weakref.getweakrefs(tensor) for tensor in tensors]
        assert sum(map(len, found)) > 12
        assert {type(ref) for refs in found for ref in refs} == {Ref}
        assert session.steps == 6


def test_a_session_that_is_over_refers_to_no_tensor() -> None:
    with Session() as session:
        model = net()
        optimizer = torch.optim.SGD(model.parameters(), 1e-3)
        for _ in range(100):
            optimizer.zero_grad()
            loss(model).backward()
            optimizer.step()
    assert [weakref.getweakrefcount(parameter) for parameter in model.parameters()] == [0, 0, 0, 0]
    model.double()
    assert (session.steps, session.findings) == (100, ())


def test_keys_of_experiments_are_distinguished_too() -> None:
    keys, one, same = tensor_keys(), torch.ones(2), torch.ones(2)
    with Session():
        keys[one] = 1
        assert (keys.get(one), keys.get(same)) == (1, None)
        swap_tensors(one, torch.zeros(3))
        assert keys[one] == 1
    del one
    assert len(keys) == 0
