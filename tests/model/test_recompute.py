"""Recomputed and compiled models have the gradients of the plain one, bit for bit, and its keys."""

import copy
import io

import pytest
import torch
from torch import nn

from truestep import EMA, Run, freeze, recompute, unfreeze
from truestep.errors import BadPart, BadSettings
from truestep.testing import assert_clean


class Block(nn.Module):
    """All that makes a second pass differ: dropout, BatchNorm, and a buffer that the next pass reads."""

    def __init__(self):
        super().__init__()
        self.wide, self.narrow = nn.Linear(8, 32), nn.Linear(32, 8)
        self.dropout, self.norm = nn.Dropout(0.3), nn.BatchNorm1d(8)
        self.register_buffer("gain", torch.ones(()))
        self.register_buffer("mask", torch.tril(torch.ones(8, 8)), persistent=False)

    def forward(self, x, *, scale=1.0):
        if self.training:
            self.gain.data.mul_(0.9)
        hidden = self.dropout(torch.relu(self.wide(x @ self.mask)))
        return x + scale * self.gain * self.norm(self.narrow(hidden))


class Net(nn.Module):
    def __init__(self, kind=Block):
        super().__init__()
        self.blocks = nn.ModuleList([kind() for _ in range(3)])
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        for block in self.blocks:
            x = block(x, scale=0.5)
        return self.head(x)


class Pure(Block):
    """Without the buffer that is written behind autograd's back, which a compiler does not allow either."""

    def forward(self, x, *, scale=1.0):
        return x + scale * self.norm(self.narrow(self.dropout(torch.relu(self.wide(x)))))


def net(kind=Block):
    torch.manual_seed(0)
    return Net(kind)


def trained(model, precision=None, steps=3):
    """Weights, buffers, gradients and the next random number after some steps by hand."""
    torch.manual_seed(1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    for _ in range(steps):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "bf16"):
            loss = model(torch.randn(6, 8)).square().mean()
        loss.backward()
        optimizer.step()
    return [*model.parameters(), *(p.grad for p in model.parameters()), *model.buffers(), torch.rand(2)]


def same(one, other):
    return len(one) == len(other) and all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.fixture
def fresh_compiler():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.mark.parametrize("precision", [None, "bf16"])
def test_a_recomputed_model_is_the_plain_one_also_with_dropout_and_buffers(precision):
    model = net()
    assert recompute(model, Block) == ["blocks.0", "blocks.1", "blocks.2"]
    assert same(trained(model, precision), trained(net(), precision))


def test_blocks_are_computed_twice_and_keep_less():
    def kept(model):
        sizes = {}
        own = {p.data_ptr() for p in model.parameters()}

        def pack(tensor):
            if tensor.data_ptr() not in own:
                sizes[tensor.data_ptr()] = tensor.nbytes
            held.append(tensor)
            return tensor

        held = []
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            model(torch.randn(64, 8)).sum().backward()
        return sum(sizes.values())

    model, calls = net(), []
    model.blocks[0].wide.register_forward_hook(lambda *_: calls.append(1))
    plain = kept(model)
    assert len(calls) == 1
    recompute(model, [Block])
    calls.clear()
    assert kept(model) * 3 < plain
    assert len(calls) == 2


def test_keys_classes_and_names_stay():
    model = net()
    names = [name for name, _ in model.named_modules()]
    recompute(model, Block)
    assert list(model.state_dict()) == list(net().state_dict())
    assert [name for name, _ in model.named_modules()] == names
    assert type(model.blocks[0]) is Block


def test_without_gradients_nothing_is_kept_for_a_second_pass():
    model = net().eval()
    recompute(model, Block)
    with torch.no_grad():
        assert torch.equal(model(torch.ones(2, 8)), net().eval()(torch.ones(2, 8)))


def test_a_copy_of_a_recomputed_model_recomputes_itself():
    model = net()
    recompute(model, Block)
    other = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    assert same(trained(other), trained(net()))
    assert EMA(net()).model is not model


def test_a_pickled_model_computes(tmp_path):
    model = net()
    recompute(model, Block)
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=False)
    assert same(trained(loaded), trained(net()))


def test_a_norm_layer_that_is_unfrozen_later_is_counted_once():
    ours, twin = net(), net()
    recompute(ours, Block)
    for model in (ours, twin):
        freeze(model, "*.norm")
        trained(model)
        unfreeze(model)
    assert same(trained(ours), trained(twin))


def test_two_backward_passes_recompute_twice():
    def gradients(model):
        torch.manual_seed(1)
        out = model(torch.randn(6, 8))
        out.sum().backward(retain_graph=True)
        out.square().sum().backward()
        return [*(p.grad for p in model.parameters()), *model.buffers()]

    model = net()
    recompute(model, Block)
    assert same(gradients(model), gradients(net()))


def test_of_nested_blocks_the_outermost_is_recomputed():
    model = nn.Sequential(nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2))), nn.Sequential(nn.ReLU()))
    assert recompute(model, nn.Sequential) == ["0", "1"]
    assert recompute(model, (nn.Sequential,)) == ["0", "1"]  # again changes nothing
    model(torch.ones(1, 2)).sum().backward()


def test_blocks_that_are_not_there_are_named():
    with pytest.raises(BadPart, match=r"(?s)the model has no TransformerEncoderLayer.*Linear \(7\), Block \(3\)"):
        recompute(net(), nn.TransformerEncoderLayer)
    for kinds in ("blocks.*", ["blocks"], [], net(), object, None):
        with pytest.raises(BadPart, match="recompute must be types of modules"):
            recompute(net(), kinds)


def test_a_forward_pass_that_was_replaced_is_left_alone():
    model = net()
    model.blocks[1].forward = lambda x, scale: x
    with pytest.raises(BadPart, match="the forward of Block was replaced"):
        recompute(model, Block)


def test_an_exported_program_has_no_second_pass():
    model = net(Pure).eval()
    recompute(model, Block)
    run = Run(device="cpu", watch=False)
    run.model(model)
    x = torch.randn(2, 8)
    exported = torch.export.export(model, (x,))
    assert "checkpoint" not in str(exported.graph)
    torch.testing.assert_close(exported.module()(x), model(x))


# --- in a run, and compiled ---


def test_no_blocks_and_no_compilation_are_the_plain_model():
    model = Run(device="cpu").model(net(), recompute=[], compile=False)
    assert not any("forward" in vars(block) for block in model.blocks)
    assert model._compiled_call_impl is None


def test_a_refused_model_can_be_given_again():
    run, model = Run(device="cpu"), net()
    with pytest.raises(BadPart):
        run.model(model, recompute=nn.LSTM)
    with pytest.raises(BadSettings):
        run.model(model, compile="fast")
    assert run.model(model, recompute=Block) is model


@pytest.mark.program
@pytest.mark.parametrize("options", [{"recompute": [Pure]}, {}], ids=["recompute", "plain"])
def test_a_compiled_model_is_the_plain_one_with_its_keys(options, fresh_compiler):
    run = Run(device="cpu")
    model = run.model(net(Pure), compile={"backend": "aot_eager"}, **options)
    assert type(model) is Net
    assert list(model.state_dict()) == list(net(Pure).state_dict())
    assert same(trained(model), trained(net(Pure)))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_inductor_recomputes_what_it_computes(fresh_compiler):
    run = Run(device="cpu")
    plain = trained(run.model(net(Pure), compile=True))
    torch._dynamo.reset()
    assert same(trained(run.model(net(Pure), compile=True, recompute=Pure)), plain)


@pytest.mark.parametrize(
    ("how", "options"),
    [
        (True, {}),
        ("reduce-overhead", {"mode": "reduce-overhead"}),
        ({"fullgraph": True, "dynamic": False}, {"fullgraph": True, "dynamic": False}),
    ],
)
def test_all_ways_to_compile_reach_torch(how, options, monkeypatch):
    seen = []
    monkeypatch.setattr(torch, "compile", lambda call, *args, **given: seen.append(given) or call)
    Run(device="cpu").model(net(), compile=how)
    assert seen == [options]


def test_what_torch_compile_does_not_know_is_refused():
    run = Run(device="cpu")
    with pytest.raises(BadSettings, match=r'(?s)"max-autotun" is not a mode.*write compile="max-autotune"'):
        run.model(net(), compile="max-autotun")
    with pytest.raises(BadSettings, match=r'(?s)"full_graph" is not an option.*write fullgraph='):
        run.model(net(), compile={"full_graph": True})
    with pytest.raises(BadSettings, match=r"compile must be .* got 3"):
        run.model(net(), compile=3)
    with pytest.raises(BadSettings, match="both a mode and options"):
        run.model(net(), compile={"mode": "default", "options": {"max_autotune": True}})


def loop(out, stop=None, **options):
    """Train with an average, killed after some steps."""
    torch._dynamo.reset()
    run = Run(out=out, seed=3, device="cpu", max_steps=8, resume="auto", save_every_n_steps=2)
    model = run.model(net(Pure), **options)
    run.optimizer(torch.optim.AdamW(model.parameters(), lr=0.05))
    ema = run.ema(model, 0.9)
    with run:
        for step in run.steps(8, model):
            run.step(model(torch.randn(6, 8)).square().mean())
            if step == stop:
                raise KeyboardInterrupt
    return [*model.state_dict().values(), *ema.model.state_dict().values()]


@pytest.mark.program
@pytest.mark.parametrize(
    "options",
    [{"recompute": Pure}, {"compile": {"backend": "aot_eager"}, "recompute": Pure}],
    ids=["recompute", "compiled"],
)
def test_a_killed_run_goes_on_as_the_plain_one(options, tmp_path, fresh_compiler):
    whole = loop(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        loop(tmp_path / "run", stop=4, **options)
    assert same(loop(tmp_path / "run", **options), whole)


def test_a_recomputed_loop_is_clean():
    with assert_clean():
        run = Run(seed=1, device="cpu", max_steps=8)
        model = run.model(net(), recompute=Block)
        run.optimizer(torch.optim.AdamW(model.parameters(), lr=0.01))
        for _ in run.steps(8, model):
            run.step(nn.functional.mse_loss(model(torch.randn(6, 8)), torch.randn(6, 2)))
