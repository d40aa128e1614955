"""`features` takes activations out of a model and puts others in, and leaves nothing behind."""

import copy
import warnings
from collections import OrderedDict, namedtuple
from dataclasses import dataclass

import pytest
import torch
import torch.utils.checkpoint
from torch import nn

from truestep.debugging import Features, features
from truestep.errors import BadPatch, ModuleNotCalled, UnknownModule
from truestep.testing import assert_clean


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(inplace=True), nn.Linear(4, 2))


def hooks(model):
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())


# --- extraction ---


def test_features_are_what_the_modules_returned_before_others_worked_in_place():
    model = net()
    x = torch.randn(5, 3)
    with features(model, ["0", "1"]) as kept:
        y = model(x)
    linear = model[0](x)
    assert torch.equal(kept["0"], linear)
    assert (kept["0"] < 0).any()
    assert torch.equal(kept["1"], linear.relu())
    assert torch.equal(y, model(x))
    assert list(kept) == ["0", "1"]
    assert hooks(model) == 0


def test_features_stay_when_the_context_is_left_and_are_of_the_last_call():
    model = net()
    x = torch.randn(2, 4, 3)
    with features(model, ["2"]) as kept:
        model(x[0])
        first = kept["2"]
        model(x[1])
    model(x[0])
    assert torch.equal(first, model(x[0]))
    assert torch.equal(kept["2"], model(x[1]))


def test_every_call_is_kept_if_asked_for_until_it_is_cleared():
    cell = nn.GRUCell(2, 2)
    with features(cell, [""], every_call=True) as kept:
        state = torch.zeros(1, 2)
        states = [state := cell(torch.ones(1, 2), state) for _ in range(3)]
        assert all(torch.equal(a, b) for a, b in zip(kept[""], states, strict=True))
        kept.clear()
        assert len(kept) == 0
        cell(torch.ones(1, 2), state)
    assert len(kept[""]) == 1


def test_detached_features_hold_no_graph_and_others_reach_the_model():
    model, x = net(), torch.randn(5, 3)
    with features(model, ["0"]) as kept:
        model(x)
    assert not kept["0"].requires_grad
    with features(model, ["0"], detach=False) as kept:
        model(x)
    kept["0"].square().mean().backward()
    expected = copy.deepcopy(model)
    expected.zero_grad()
    expected[0](x).square().mean().backward()
    assert torch.equal(model[0].weight.grad, expected[0].weight.grad)


def test_extracting_in_a_training_changes_nothing():
    ours = nn.Sequential(nn.Linear(3, 4), nn.Dropout(), nn.ReLU(inplace=True), nn.Linear(4, 2))
    twin = copy.deepcopy(ours)
    for model, look in (ours, True), (twin, False):
        torch.manual_seed(1)
        optimizer = torch.optim.Adam(model.parameters())
        for _ in range(3):
            if look:
                with features(model, ["0", "1"]):
                    loss = model(torch.randn(5, 3)).square().sum()
            else:
                loss = model(torch.randn(5, 3)).square().sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    assert all(torch.equal(a, b) for a, b in zip(ours.parameters(), twin.parameters(), strict=True))


Pair = namedtuple("Pair", "left right")


@dataclass(frozen=True)
class Out:
    logits: torch.Tensor
    names: tuple[str, ...]


NESTED = {
    "tuple": lambda t: (t, 3),
    "list": lambda t: [t, None],
    "dict": lambda t: {"a": t, 1: "b"},
    "ordered": lambda t: OrderedDict(a=t),
    "named": lambda t: Pair(t, t + 1),
    "dataclass": lambda t: Out(t, ("x",)),
    "deep": lambda t: ({"a": [Pair(t, None)]},),
    "max": lambda t: torch.max(t, dim=0),
}


@pytest.mark.parametrize("kind", NESTED)
def test_nested_outputs_keep_their_make(kind):
    class Returns(nn.Module):
        def forward(self, x):
            return NESTED[kind](x)

    model = Returns()
    x = torch.randn(2, 3, requires_grad=True)
    with features(model, [""]) as kept:
        out = model(x)
    assert type(kept[""]) is type(out)
    flat = list(walked(kept[""]))
    assert [t.shape for t in flat] == [t.shape for t in walked(out)]
    assert not any(t.requires_grad for t in flat)
    assert all(torch.equal(a, b) for a, b in zip(flat, walked(out), strict=True))


def walked(value):
    from truestep.debugging._nested import tensors

    return [tensor for _, tensor in tensors(value)]


def test_what_checkpointing_computes_again_is_kept_once_and_patched_twice():
    block = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
    x = torch.randn(2, 3, requires_grad=True)
    with features(block, ["0"], patch={"1": lambda out: out * 2}, every_call=True) as kept:
        torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False).sum().backward()
    found = x.grad.clone()
    x.grad = None
    (block(x) * 2).sum().backward()
    assert torch.equal(found, x.grad)
    assert len(kept["0"]) == 1


# --- patching ---


def test_a_tensor_takes_the_place_of_an_activation():
    model = net()
    clean, corrupted = torch.randn(2, 5, 3)
    with features(model, ["1"]) as kept:
        y = model(clean)
    with features(model, patch={"1": kept["1"]}):
        patched = model(corrupted)
    assert torch.equal(patched, y)
    assert not torch.equal(model(corrupted), y)
    assert hooks(model) == 0


def test_a_function_changes_an_activation_and_gradients_flow_through_it():
    model, x = net(), torch.randn(5, 3)
    with features(model, ["0"], patch={"1": lambda out: out * 2}) as kept:
        model(x).sum().backward()
    found = model[0].weight.grad.clone()
    assert torch.equal(kept["1"], kept["0"].relu() * 2)
    model.zero_grad()
    model[2](model[0](x).relu() * 2).sum().backward()
    assert torch.equal(found, model[0].weight.grad)


def test_a_patch_of_nested_output_is_a_function():
    lstm = nn.LSTM(3, 4)

    def forget(output):
        sequence, (hidden, cell) = output
        return sequence, (hidden * 0, cell)

    with features(lstm, patch={"": forget}):
        _, (hidden, cell) = lstm(torch.randn(2, 1, 3))
    assert hidden.abs().max() == 0
    assert cell.abs().max() > 0
    with pytest.raises(BadPatch, match="has another shape"), features(lstm, patch={"": torch.zeros(2)}):
        lstm(torch.randn(2, 1, 3))


def test_a_patch_takes_dtype_and_device_of_what_it_replaces():
    model = net().double()
    with features(model, patch={"1": torch.zeros(5, 4)}):
        assert model(torch.randn(5, 3, dtype=torch.float64)).dtype is torch.float64


# --- defects ---


def test_hooks_are_removed_after_an_exception():
    model = net()
    with pytest.raises(RuntimeError, match="multiplied"), features(model, ["0", "2"]):
        model(torch.randn(5, 9))
    assert hooks(model) == 0


def test_a_wrong_name_is_answered_with_the_nearest_and_hooks_nothing():
    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer1, self.layer2 = nn.Linear(2, 2), nn.Linear(2, 2)

    model = Named()
    with pytest.raises(UnknownModule) as raised, features(model, ["layer1", "layr2"]):
        pass
    message = 'the model has no module "layr2"\n  expected one of "layer1", "layer2"\n  write "layer2"'
    assert str(raised.value) == message
    assert hooks(model) == 0
    with pytest.raises(UnknownModule, match="no module"), features(model, patch={"weight": torch.zeros(1)}):
        pass
    with features(model, ["layer1"]) as kept, pytest.raises(UnknownModule, match='"layer2" was not recorded'):
        kept["layer2"]


def test_a_single_name_is_a_list_of_one():
    model = net()
    with features(model, "2") as kept:
        model(torch.randn(5, 3))
    assert list(kept) == ["2"]


def test_a_module_that_was_not_called_says_so():
    model = net()
    with features(model, ["2"]) as kept:
        pass
    assert "2" not in kept
    with pytest.raises(ModuleNotCalled, match='"2" was not called'):
        kept["2"]


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ({"1": 3}, 'the patch of "1" must be a tensor or a function of the output, got int'),
        ({"1": torch.zeros(4)}, 'the patch of "1" has another shape than its output'),
        ({"1": lambda out: None}, 'the patch of "1" returned None'),
    ],
)
def test_a_patch_that_does_not_fit_is_refused(patch, message):
    model = net()
    with pytest.raises(BadPatch) as raised, features(model, patch=patch):
        model(torch.randn(5, 3))
    assert str(raised.value).startswith(message)
    assert hooks(model) == 0


def test_compiled_models_refuse_and_say_why():
    model = net()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*torch.jit")  # from torch 2.9 on
        script = torch.jit.script(model)
    for compiled in torch.compile(model, backend="eager"), script:
        with pytest.raises(UnknownModule, match="where hooks are not called"), features(compiled, ["0"]):
            pass
    assert hooks(model) == 0


def test_shared_modules_answer_to_all_their_names():
    block = nn.Sequential(nn.Linear(2, 2))
    model = nn.ModuleDict({"a": block, "b": block})
    with features(model, ["b.0"]) as kept:
        block(torch.ones(1, 2))
    assert kept["b.0"].shape == (1, 2)


def test_features_print_their_shapes():
    model = net()
    with features(model, ["0"]) as kept:
        model(torch.randn(5, 3))
    assert isinstance(kept, Features)
    assert repr(kept) == "Features({'0': (5, 4)})"


def test_training_with_features_is_quiet_under_supervision():
    with assert_clean():
        model = net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(12):
            with features(model, ["0"], patch={"1": lambda out: out * 0.5}):
                loss = nn.functional.mse_loss(model(torch.randn(5, 3)), torch.zeros(5, 2))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
