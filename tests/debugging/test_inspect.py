"""`inspect` sees a step as it is, and the step is the one that it is without."""

import copy
import dataclasses
import gc
import io
import random
import weakref

import pytest
import torch
import torch.nn.functional as F
from rich.console import Console
from torch import nn
from torch.utils.checkpoint import checkpoint

from truestep.debugging import Inspection, inspect
from truestep.errors import BadPart
from truestep.testing import assert_clean


class Net(nn.Module):
    """Convolutions, batch norm, an activation in place, dropout."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(inplace=True))
        self.drop = nn.Dropout(0.3)
        self.head = nn.Linear(4 * 16, 5)

    def forward(self, x):
        return self.head(self.drop(self.features(x).flatten(1)))


class Recurrent(nn.Module):
    """One cell, called several times, and an embedding that is the output layer too."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(7, 6)
        self.cell = nn.GRUCell(6, 6)
        self.out = nn.Linear(6, 7, bias=False)
        self.out.weight = self.embedding.weight
        self.again = self.cell

    def forward(self, tokens):
        state = torch.zeros(len(tokens), 6)
        for column in tokens.unbind(1):
            state = self.cell(self.embedding(column), state)
        return self.out(self.again(state, state))


class Recomputed(nn.Module):
    """Activations that are computed again in the backward pass."""

    def __init__(self):
        super().__init__()
        self.block = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5), nn.Tanh())
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        return self.head(checkpoint(self.block, x, use_reentrant=False))


class Teacher(nn.Module):
    """A frozen transformer in eval mode before a head; a hook would switch off its fast path."""

    def __init__(self):
        super().__init__()
        self.body = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).requires_grad_(False)
        self.head = nn.Linear(8, 5)
        self.body.eval()

    def forward(self, x):
        with torch.no_grad():
            hidden = self.body(x)
        return self.head(hidden[:, 0])


MODELS = {
    "convolutions": (Net, lambda: torch.randn(6, 1, 4, 4)),
    "recurrent": (Recurrent, lambda: torch.randint(0, 7, (6, 3))),
    "checkpointed": (Recomputed, lambda: torch.randn(6, 6)),
    "teacher": (Teacher, lambda: torch.randn(6, 3, 8)),
}


def steps(model, make, *, look, count=4, precision=None, accumulate=1):
    """Train, and return the weights, the losses and the random state after it."""
    torch.manual_seed(3)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=0.05)
    losses = []
    for step in range(count):
        with inspect(model, when=look and step % 2 == 0):
            for _ in range(accumulate):
                with torch.autocast("cpu", dtype=precision, enabled=precision is not None):
                    loss = F.cross_entropy(model(make()), torch.arange(6) % 5)
                loss.backward()
                losses.append(loss.item())
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    return model.state_dict(), losses, torch.get_rng_state()


def hooks(model):
    """How many hooks are on a model, its parameters and all optimizers."""
    on_modules = sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())
    kept = sum(
        len(m._forward_hooks_with_kwargs) + len(m._forward_pre_hooks_with_kwargs) + len(m._forward_hooks_always_called)
        for m in model.modules()
    )
    on_parameters = sum(len(p._post_accumulate_grad_hooks or ()) for p in model.parameters())
    from torch.optim import optimizer as module

    on_optimizers = len(module._global_optimizer_pre_hooks) + len(module._global_optimizer_post_hooks)
    return on_modules + kept + on_parameters + on_optimizers


# --- the training stays the same ---


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize(("precision", "accumulate"), [(None, 1), (None, 3), (torch.bfloat16, 1)])
def test_inspected_steps_are_the_steps_without(kind, precision, accumulate):
    make_model, make = MODELS[kind]
    torch.manual_seed(0)
    ours = make_model()
    twin = copy.deepcopy(ours)
    seen = steps(ours, make, look=True, precision=precision, accumulate=accumulate)
    expected = steps(twin, make, look=False, precision=precision, accumulate=accumulate)
    assert all(torch.equal(a, b) for a, b in zip(seen[0].values(), expected[0].values(), strict=True))
    assert seen[1] == expected[1]
    assert torch.equal(seen[2], expected[2])
    assert hooks(ours) == 0


def test_python_draws_nothing_and_settings_are_as_before():
    model = Net()
    before = random.getstate(), torch.is_grad_enabled(), torch.is_autocast_enabled("cpu")
    with inspect(model) as seen:
        model(torch.randn(2, 1, 4, 4)).sum().backward()
    str(seen)
    assert (random.getstate(), torch.is_grad_enabled(), torch.is_autocast_enabled("cpu")) == before


def test_hooks_are_removed_after_an_exception_of_any_kind():
    for error in RuntimeError, KeyboardInterrupt:
        model = Net()
        with pytest.raises(error), inspect(model):
            model(torch.randn(2, 1, 4, 4))
            raise error
        assert hooks(model) == 0


def test_a_model_can_be_converted_by_swaps_inside():
    """Also where a module is given a parameter, or returns one: the record of it holds no weak reference."""

    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale, self.given, self.layer = nn.Parameter(torch.ones(4)), nn.Identity(), nn.Linear(4, 1)

        def forward(self, x):
            return self.layer(self.given(self.scale) * x)

    def train(look):
        torch.manual_seed(0)
        model = Scaled()
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        with inspect(model, when=look) as seen:
            for convert in (model.double, model.float):
                optimizer.zero_grad()
                model(torch.ones(2, 4, dtype=model.scale.dtype)).sum().backward()
                optimizer.step()
                convert()
        return [parameter.tolist() for parameter in model.parameters()], [layer.name for layer in seen.layers]

    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        plain, looked = train(False), train(True)
    finally:
        torch.__future__.set_swap_module_params_on_conversion(False)
    assert looked == (plain[0], ["", "given", "layer"])


def test_no_activation_is_kept_alive():
    model = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3))
    alive = []
    model[1].register_forward_hook(lambda module, args, output: alive.append(weakref.ref(output)))
    with inspect(model):
        model(torch.randn(2, 3)).sum().backward()
        gc.collect()
        assert alive[0]() is None


def test_training_is_quiet_under_supervision():
    with assert_clean():
        steps(Net(), lambda: torch.randn(6, 1, 4, 4), look=True, count=12)


# --- tables ---


def test_layers_have_the_shapes_and_the_numbers_of_their_tensors():
    torch.manual_seed(0)
    model = Net()
    twin = copy.deepcopy(model)
    x, y = torch.randn(6, 1, 4, 4), torch.arange(6) % 5
    torch.manual_seed(1)
    with inspect(model) as seen:
        F.cross_entropy(model(x), y).backward()
    torch.manual_seed(1)
    conv = twin.features[0](x)
    norm = twin.features[1](conv)
    relu = F.relu(norm)
    logits = twin.head(twin.drop(relu.flatten(1)))
    for tensor in conv, norm, relu, logits:
        tensor.retain_grad()
    F.cross_entropy(logits, y).backward()
    names = ["", "features", "features.0", "features.1", "features.2", "drop", "head"]
    assert [layer.name for layer in seen.layers] == names
    assert [layer.depth for layer in seen.layers] == [0, 1, 2, 2, 2, 1, 1]
    for name, tensor in ("features.0", conv), ("features.1", norm), ("features.2", relu), ("head", logits):
        (out,) = seen.layer(name).calls[0].outputs
        assert out.shape == tuple(tensor.shape)
        assert out.statistics.mean == pytest.approx(tensor.mean().item(), abs=1e-6)
        assert out.statistics.std == pytest.approx(tensor.std(correction=0).item(), abs=1e-6)
        assert out.statistics.max == tensor.abs().max().item()
        assert out.statistics.zeros == pytest.approx((tensor == 0).float().mean().item())
        assert out.gradient.rms == pytest.approx(tensor.grad.square().mean().sqrt().item(), rel=1e-4)
    assert seen.layer("features.0").calls[0].inputs[0].shape == (6, 1, 4, 4)


def test_parameters_have_their_gradients_and_updates_as_the_optimizer_used_them():
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    before = model.weight.detach().clone()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    with inspect(model) as seen:
        model(torch.randn(4, 3)).square().sum().backward()
        raw = model.weight.grad.clone()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        used = model.weight.grad.clone()
        optimizer.step()
        optimizer.zero_grad()
    weight = seen.parameter("weight")
    assert not torch.equal(raw, used)
    assert weight.gradient.rms == pytest.approx(used.square().mean().sqrt().item(), rel=1e-5)
    assert weight.value.rms == pytest.approx(before.square().mean().sqrt().item(), rel=1e-5)
    assert weight.update == pytest.approx((0.5 * used.norm() / before.norm()).item(), rel=1e-4)
    assert seen.gradients == "as the optimizer used them"


def test_without_a_step_gradients_are_those_of_the_backward_pass():
    model = nn.Linear(3, 2)
    with inspect(model) as seen:
        model(torch.ones(4, 3)).sum().backward()
    assert seen.gradients == "as the backward pass left them"
    assert seen.parameter("bias").gradient.mean == 4
    assert seen.parameter("bias").update is None


def test_where_the_loss_reaches_is_reported():
    class Cut(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second, self.unused = nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 3)
            self.frozen = nn.Linear(3, 3).requires_grad_(False)

        def forward(self, x):
            return self.frozen(self.second(self.first(x).detach()))

    model = Cut()
    with inspect(model) as seen:
        model(torch.randn(2, 3)).sum().backward()
    assert seen.reached == ("second.weight", "second.bias")
    assert seen.unreached == ("first.weight", "first.bias", "unused.weight", "unused.bias")
    assert seen.not_called == ("unused",)
    assert not seen.parameter("frozen.weight").trainable
    assert "no gradient: 4 of 6 that are trained: first.weight" in str(seen)
    assert "not called: unused" in str(seen)


def test_several_optimizers_each_give_their_updates():
    models = nn.Linear(2, 2), nn.Linear(2, 2)
    optimizers = [torch.optim.SGD(model.parameters(), lr=lr) for model, lr in zip(models, (0.1, 1.0), strict=True)]
    with inspect(*models) as seen:
        for model, optimizer in zip(models, optimizers, strict=True):
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    assert [p.name for p in seen.parameters] == ["linear.weight", "linear.bias", "linear_2.weight", "linear_2.bias"]
    assert all(p.update > 0 for p in seen.parameters)
    assert [layer.name for layer in seen.layers] == ["linear", "linear_2"]


def test_an_optimizer_that_evaluates_the_loss_itself_gives_its_updates():
    model = nn.Linear(3, 2)
    before = model.weight.detach().clone()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)
    x = torch.randn(4, 3)

    def closure():
        optimizer.zero_grad()
        loss = model(x).square().sum()
        loss.backward()
        return loss

    with inspect(model) as seen:
        optimizer.step(closure)
    assert seen.parameter("weight").update == pytest.approx(((model.weight - before).norm() / before.norm()).item())
    assert seen.unreached == ()
    assert len(seen.layer("").calls) > 1


def test_optimizers_that_step_inside_the_backward_pass_give_their_updates():
    model = nn.Linear(3, 2)
    optimizers = {p: torch.optim.SGD([p], lr=0.1) for p in model.parameters()}

    def step(parameter):
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(step)
    with inspect(model) as seen:
        model(torch.ones(4, 3)).sum().backward()
    assert seen.unreached == ()
    assert all(p.update > 0 and p.gradient.mean == 4 for p in seen.parameters)


def test_inspections_of_one_model_in_each_other_see_the_same():
    model = Net()
    with inspect(model) as outer, inspect(model) as inner:
        model(torch.randn(2, 1, 4, 4)).sum().backward()
    assert outer.layers == inner.layers
    assert outer.parameters == inner.parameters
    assert hooks(model) == 0


def test_a_gradient_of_a_gradient_is_as_without():
    ours = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    twin = copy.deepcopy(ours)
    x = torch.randn(5, 3)
    for model, look in (ours, True), (twin, False):
        with inspect(model, when=look):
            given = x.clone().requires_grad_()
            loss = model(given).sum()
            (slope,) = torch.autograd.grad(loss, given, create_graph=True)
            (loss + slope.square().sum()).backward()
    assert all(torch.equal(a.grad, b.grad) for a, b in zip(ours.parameters(), twin.parameters(), strict=True))


def test_an_update_of_a_parameter_that_was_zero_is_infinite_and_one_that_stays_zero_has_none():
    model = nn.Linear(2, 2)
    nn.init.zeros_(model.weight)
    nn.init.zeros_(model.bias)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with inspect(model) as seen:
        (model(torch.zeros(1, 2)) * torch.ones(2)).sum().backward()
        optimizer.step()
    assert seen.parameter("bias").update == float("inf")
    assert seen.parameter("weight").update is None
    assert "from 0" in str(seen)


def test_modules_called_several_times_have_every_call_and_their_other_names():
    model = Recurrent()
    with inspect(model) as seen:
        model(torch.randint(0, 7, (2, 3))).sum().backward()
    cell = seen.layer("cell")
    assert cell is seen.layer("again")
    assert cell.also == ("again",)
    assert len(cell.calls) == 4
    assert all(call.outputs[0].gradient is not None for call in cell.calls)
    assert [call.inputs[0].dtype for call in seen.layer("embedding").calls] == [torch.int64] * 3
    assert [p.name for p in seen.parameters].count("embedding.weight") == 1
    assert "cell x4" in str(seen)


def test_what_checkpointing_computes_again_is_counted_once():
    model = Recomputed()
    with inspect(model) as seen:
        model(torch.randn(2, 6)).sum().backward()
    assert [len(layer.calls) for layer in seen.layers] == [1] * len(seen.layers)
    assert seen.unreached == ()


@dataclasses.dataclass
class Out:
    logits: torch.Tensor
    states: tuple[torch.Tensor, ...]
    extra: dict[str, object]


class Nested(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 3)

    def forward(self, x, *, scale):
        y = self.inner(x) * scale
        return Out(y, (y + 1, y.to(torch.complex64)), {"count": 3, "half": y.half(), "empty": y[:0], "none": None})


def test_nested_values_of_every_dtype_are_seen():
    model = Nested()
    with inspect(model) as seen:
        out = model(torch.randn(2, 3), scale=torch.tensor(2.0))
        (out.logits.sum() + out.states[1].abs().sum()).backward()
    call = seen.layer("").calls[0]
    assert call.gives == "{logits: (2, 3), states: ((2, 3), (2, 3)), extra: {half: (2, 3), empty: (0, 3)}}"
    by_path = {out.path: out for out in call.outputs}
    assert list(by_path) == [".logits", ".states[0]", ".states[1]", ".extra.half", ".extra.empty"]
    assert by_path[".states[1]"].dtype is torch.complex64
    assert by_path[".states[1]"].statistics.max == pytest.approx(out.states[1].abs().max().item(), rel=1e-5)
    assert by_path[".extra.half"].statistics is not None
    assert by_path[".extra.empty"].statistics is None
    assert by_path[".logits"].gradient is not None
    assert by_path[".states[0]"].gradient is None
    assert [given.path for given in call.inputs] == ["[0]", ".scale"]
    assert len(str(seen).splitlines()[3]) <= 80


def test_sparse_gradients_and_integer_buffers_are_measured():
    model = nn.Sequential(nn.Embedding(10, 3, sparse=True), nn.Flatten(), nn.BatchNorm1d(6))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with inspect(model) as seen:
        model(torch.tensor([[1, 1], [2, 3]])).square().sum().backward()
        optimizer.step()
    assert seen.parameter("0.weight").gradient is not None
    assert seen.parameter("0.weight").update > 0
    assert seen.trouble == []


def test_transforms_of_torch_func_pass_through():
    model = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
    weights = dict(model.named_parameters())

    def loss(weights, x):
        return torch.func.functional_call(model, weights, (x,)).sum()

    x = torch.randn(5, 3)
    expected = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(weights, x)
    with inspect(model) as seen:
        found = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(weights, x)
    assert all(torch.equal(found[name], expected[name]) for name in expected)
    assert seen.layer("0").calls[0].outputs[0].statistics is None
    assert seen.trouble == []


def test_lazy_modules_are_seen():
    model = nn.Sequential(nn.LazyLinear(4), nn.Linear(4, 2))
    with inspect(model) as seen:
        model(torch.randn(3, 5)).sum().backward()
    assert seen.layer("0").calls[0].gives == "(3, 4)"
    assert model[0].weight.grad is not None
    assert "0.weight" not in [p.name for p in seen.parameters]  # it had no shape when the context began


def test_evaluation_under_inference_mode_is_seen():
    model = Net().eval()
    with inspect(model) as seen, torch.inference_mode():
        model(torch.randn(2, 1, 4, 4))
    assert seen.layer("head").calls[0].gives == "(2, 5)"
    assert "no backward pass was seen" in str(seen)


# --- the first NaN ---


class Made(nn.Module):
    """A model that makes NaN in a place of choice."""

    def __init__(self, where):
        super().__init__()
        self.where = where
        self.first, self.bad, self.last = nn.Linear(3, 3), Divide(where == "output"), nn.Linear(3, 3)

    def forward(self, x):
        x = self.bad(self.first(x))
        if self.where == "inside":
            x = x / 0 - x / 0
        return self.last(x)


class Divide(nn.Module):
    def __init__(self, by_zero):
        super().__init__()
        self.by_zero = by_zero

    def forward(self, x):
        return (x - x) / 0 if self.by_zero else x * 2


@pytest.mark.parametrize(
    ("where", "name", "text"),
    [
        ("output", "bad", "first NaN in the output of bad (Divide): 6 of 6 values"),
        ("inside", "", "first NaN in the forward of the model (Made), before it called last (Linear): 6 of 6 values"),
    ],
)
def test_first_nan_of_the_forward_is_named_by_module(where, name, text):
    model = Made(where)
    with inspect(model) as seen:
        model(torch.randn(2, 3))
    assert (seen.first_nan.where, seen.first_nan.name, seen.first_nan.text) == (where, name, text)
    assert "first NaN" in str(seen)


def test_nan_in_the_batch_is_distinguished_from_one_that_the_model_makes():
    model = Made("")
    x = torch.randn(2, 3)
    x[1, 2] = float("nan")
    with inspect(model) as seen:
        model(x)
    assert seen.first_nan.text == "first NaN in the input of the model (Made): 1 of 6 values"


@pytest.mark.parametrize("what", ["NaN", "Inf"])
def test_a_parameter_that_is_not_finite_is_blamed_and_not_the_layer(what):
    model = Made("")
    with torch.no_grad():
        model.last.bias[0] = float(what)
    with inspect(model) as seen:
        model(torch.randn(2, 3))
    found = seen.first_nan if what == "NaN" else seen.first_inf
    assert found.text == f"first {what} in the parameter last.bias before the step: 1 of 3 values"


def test_a_buffer_that_is_nan_is_blamed():
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)).eval()
    model[1].running_mean[1] = float("nan")
    with inspect(model) as seen:
        model(torch.randn(2, 3))
    assert (seen.first_nan.where, seen.first_nan.name) == ("buffer", "1.running_mean")


def test_infinities_of_a_mask_are_no_finding_and_overflow_is():
    attention = nn.MultiheadAttention(4, 1, batch_first=True)
    mask = torch.full((3, 3), -float("inf")).triu(1)
    x = torch.randn(2, 3, 4)
    with inspect(attention) as seen:
        attention(x, x, x, attn_mask=mask)
    assert seen.first_inf is None
    model = nn.Sequential(nn.Linear(3, 3).half(), nn.ReLU())
    with torch.no_grad():
        model[0].weight.fill_(1e4)
    with inspect(model) as seen:
        model(torch.full((1, 3), 100.0).half())
    assert seen.first_inf.text == "first Inf in the output of 0 (Linear): 3 of 3 values"
    assert seen.first_nan is None


def test_nan_that_only_the_backward_pass_makes_is_named():
    class Root(nn.Module):
        def forward(self, x):
            return torch.where(x > 1e9, x, (x * 0).sqrt())

    model = nn.Sequential(nn.Linear(3, 3), Root(), nn.Identity())
    with inspect(model) as seen:
        model(torch.randn(2, 3)).sum().backward()
    assert seen.first_nan.where == "output gradient"
    assert seen.first_nan.name == "0"
    assert "made by the backward pass of the code that uses it" in seen.first_nan.text
    model = nn.Linear(3, 1)
    with inspect(model) as seen:
        (model(torch.randn(2, 3)) * 0).sqrt().sum().backward()
    assert seen.first_nan.name == ""
    assert seen.first_nan.text.startswith("first NaN in the gradient of the output of the model (Linear), made by")
    assert "the loss" in seen.first_nan.text


# --- compiled, broken, switched off ---


@pytest.mark.parametrize("way", ["function", "method"])
def test_compiled_models_are_seen_from_outside_and_say_what_is_hidden(way):
    torch.compiler.reset()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    twin = copy.deepcopy(model)
    if way == "function":
        compiled = torch.compile(model, backend="eager")
    else:
        compiled = model
        compiled.compile(backend="eager")
    x = torch.randn(5, 3)
    optimizer = torch.optim.SGD(compiled.parameters(), lr=0.1)
    for look in True, False, True:  # the first call compiles
        with inspect(compiled, when=look) as seen:
            compiled(x).square().sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    by_hand = torch.optim.SGD(twin.parameters(), lr=0.1)
    for _ in range(3):
        twin(x).square().sum().backward()
        by_hand.step()
        by_hand.zero_grad()
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), twin.parameters(), strict=True))
    assert [p.name for p in seen.parameters] == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert seen.unreached == ()
    assert all(p.update > 0 for p in seen.parameters)
    assert [(h.name, h.why) for h in seen.hidden] == [("", "torch.compile")]
    assert "by torch.compile" in str(seen)
    assert [layer.name for layer in seen.layers] == ([""] if way == "function" else [])
    assert hooks(model) == 0


def test_a_compiled_step_is_not_broken_up_and_keeps_no_hook():
    torch.compiler.reset()
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    @torch.compile(backend=backend, fullgraph=True)
    def loss_of(x):
        return model(x).square().sum()

    x = torch.randn(5, 3)
    for look in True, False, True:
        with inspect(model, when=look) as seen:
            loss_of(x).backward()
    assert seen.unreached == ()
    assert len(graphs) <= 2
    assert torch.equal(loss_of(x), model(x).square().sum())


def test_an_exception_says_in_which_module_it_was_raised_and_with_what():
    model = Net()
    with pytest.raises(RuntimeError, match="cannot be multiplied") as raised, inspect(model) as seen:
        model(torch.randn(2, 1, 6, 6))
    assert raised.value.__notes__ == ["raised in head (Linear), called with (2, 144)"]
    assert seen.raised == "head"
    assert seen.layer("features").calls[0].gives == "(2, 4, 6, 6)"
    assert seen.layer("head").calls[0].raised
    assert "raised on (2, 144)" in str(seen)
    assert hooks(model) == 0


def test_an_exception_that_the_model_handles_is_no_end():
    class Careful(nn.Module):
        def __init__(self):
            super().__init__()
            self.fails, self.works = nn.Linear(9, 9), nn.Linear(3, 3)

        def forward(self, x):
            try:
                return self.fails(x)
            except RuntimeError:
                return self.works(x)

    model = Careful()
    with inspect(model) as seen:
        model(torch.randn(2, 3)).sum().backward()
    assert seen.raised is None
    assert [layer.name for layer in seen.layers] == ["", "fails", "works"]
    assert [layer.depth for layer in seen.layers] == [0, 1, 1]
    assert seen.layer("fails").calls[0].raised
    assert not seen.layer("").calls[0].raised


def test_an_exception_outside_of_the_model_gets_no_note():
    model = nn.Linear(2, 2)
    with pytest.raises(ValueError, match="mine") as raised, inspect(model) as seen:
        model(torch.ones(1, 2))
        raise ValueError("mine")
    assert not hasattr(raised.value, "__notes__")
    assert seen.raised is None


@pytest.mark.program
def test_an_exception_that_was_handled_outside_of_the_model_is_not_the_next_one():
    model = nn.Linear(2, 2)
    for _ in range(20):  # one of these has the identity of the one before it
        with pytest.raises(ValueError, match="mine") as raised, inspect(model) as seen:
            try:
                model(torch.ones(1, 3))
            except RuntimeError:
                gc.collect()
            raise ValueError("mine")
        assert not hasattr(raised.value, "__notes__")
        assert seen.raised is None


def test_around_a_whole_training_it_ends_by_itself(monkeypatch):
    monkeypatch.setattr("truestep.debugging.inspecting.MOST", 50)
    model = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
    with inspect(model) as seen:
        for _ in range(30):
            model(torch.randn(2, 3)).sum().backward()
    assert 1 < len(seen.layer("0").calls) < 30
    assert "not measured: everything after 50 tensors; inspect is meant for single steps" in str(seen)
    assert hooks(model) == 0


def test_what_cannot_be_measured_is_reported_and_ends_nothing(monkeypatch):
    class Stubborn(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            if getattr(function, "__name__", "") == "std_mean":
                raise NotImplementedError("no std_mean\nin two lines")
            return super().__torch_function__(function, types, args, kwargs or {})

    model = nn.Linear(3, 3)
    x = torch.randn(2, 3).as_subclass(Stubborn)
    with inspect(model) as seen:
        model(x).sum().backward()
    assert seen.layer("").calls[0].gives == "(2, 3)"
    assert seen.layer("").calls[0].outputs[0].statistics is None
    assert seen.trouble == ["torch.float32: no std_mean"]
    assert "not measured: torch.float32: no std_mean" in str(seen)


def test_a_device_that_has_failed_does_not_hide_the_error_of_the_training(monkeypatch):
    def fails(measured):
        raise RuntimeError("CUDA error: device-side assert triggered")

    monkeypatch.setattr("truestep.debugging._record.read", fails)
    model = nn.Linear(3, 3)
    with pytest.raises(ValueError, match="mine"), inspect(model) as seen:
        model(torch.randn(2, 3)).sum().backward()
        raise ValueError("mine")
    assert "CUDA error" in str(seen)
    assert seen.layer("").calls[0].gives == "(2, 3)"


def test_switched_off_it_looks_at_nothing():
    model = Net()
    with inspect(model, when=False) as seen:
        assert hooks(model) == 0
        model(torch.randn(2, 1, 4, 4))
    assert not seen
    assert seen.layers == ()
    assert str(seen) == "inspect: skipped, since `when` was false"


@pytest.mark.parametrize("models", [(), (3,), ("net",)])
def test_what_is_no_model_is_refused(models):
    with pytest.raises(BadPart, match="takes one or more nn\\.Module"), inspect(*models):
        pass


# --- the table ---


def test_table_fits_into_80_columns_and_widens():
    model = nn.ModuleDict({"a_module_with_a_very_long_name_for_a_module": nn.TransformerDecoderLayer(8, 2, 16)})
    layer = model["a_module_with_a_very_long_name_for_a_module"]
    with inspect(model) as seen:
        layer(torch.randn(3, 2, 8), torch.randn(3, 2, 8)).square().sum().backward()
    lines = str(seen).splitlines()
    assert max(map(len, lines)) <= 80
    assert any("…" in line for line in lines)
    wide = io.StringIO()
    Console(file=wide, width=160, color_system=None).print(seen)
    assert "…" not in wide.getvalue()


def test_long_tables_are_cut_in_the_middle():
    model = nn.Sequential(*(nn.Linear(2, 2) for _ in range(100)))
    with inspect(model) as seen:
        model(torch.ones(1, 2)).sum().backward()
    text = str(seen)
    assert len(seen.layers) == 101
    assert "... 41 more in .layers" in text
    assert "... 140 more in .parameters" in text
    assert "99.bias" in text


def test_an_inspection_can_be_asked_for_names_that_are_not_there():
    for ask in Inspection().layer, Inspection().parameter:
        with pytest.raises(KeyError):
            ask("fc")


def test_a_gradient_is_the_one_that_the_optimizer_used_also_if_another_loss_adds_to_it_later():
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with inspect(model) as seen:
        model(torch.ones(2, 3)).sum().backward()
        optimizer.step()
        (100 * model(torch.ones(2, 3)).sum()).backward()
    assert seen.parameter("bias").gradient.mean == 2.0
    assert seen.gradients == "as the optimizer used them"
