"""Every piece of `examples/from_scratch` gives the results of torch.

Most are compared in float64, up to the last bits: torch computes some formulas in another order than their papers,
which are followed here. Where the order is the same, the results are equal.
"""

import doctest
import importlib
import re
import sys

import pytest
import torch
import torch.nn.functional as F
from programs import REPOSITORY, supervise
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR
from torch.utils.data import DataLoader, Sampler, TensorDataset

FOLDER = REPOSITORY / "examples" / "from_scratch"
PIECES = sorted(path.stem for path in FOLDER.glob("*.py"))
LONGEST = 90

sys.path.insert(0, str(FOLDER))  # as python does for a script of the folder
modules = {name: importlib.import_module(name) for name in PIECES}
sys.path.remove(str(FOLDER))


def last_bits(got, expected):
    """Assert that float64 results differ by rounding only: 2 ** -52 is 2.2e-16, and a few of them add up."""
    torch.testing.assert_close(got, expected, rtol=1e-12, atol=1e-14)


def randn(*shape, seed=0, requires_grad=False):
    values = torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return values.requires_grad_(requires_grad)


# --- activations and losses ---

SPECIAL = torch.tensor([-float("inf"), -1.5, -0.0, 0.0, 1e-45, 2.0, float("inf"), float("nan")])


def test_relu_is_that_of_torch_for_every_kind_of_number():
    assert torch.equal(modules["relu"].relu(SPECIAL).nan_to_num(-7.0), F.relu(SPECIAL).nan_to_num(-7.0))
    assert modules["relu"].relu(SPECIAL)[-1].isnan()


def test_relu_backward_is_that_of_torch():
    x = SPECIAL.clone().requires_grad_()
    grad_output = torch.arange(1.0, 9.0)
    F.relu(x).backward(grad_output)
    assert torch.equal(modules["relu"].relu_backward(SPECIAL, grad_output), x.grad)


@pytest.mark.parametrize("scale", [1.0, 1000.0])
def test_softmax_is_that_of_torch(scale):
    x = randn(5, 7) * scale
    last_bits(modules["softmax"].softmax(x), F.softmax(x, dim=-1))
    last_bits(modules["softmax"].log_softmax(x), F.log_softmax(x, dim=-1))


@pytest.mark.parametrize("scale", [1.0, 1000.0])
def test_cross_entropy_and_its_gradient_are_those_of_torch(scale):
    x = (randn(6, 10) * scale).requires_grad_()
    targets = torch.tensor([3, 0, 9, 3, 1, 7])
    expected = F.cross_entropy(x, targets)
    expected.backward()
    with torch.no_grad():
        last_bits(modules["cross_entropy"].cross_entropy(x, targets), expected.detach())
        last_bits(modules["cross_entropy"].cross_entropy_backward(x, targets), x.grad)


def test_naive_cross_entropy_overflows_where_ours_does_not():
    x = torch.tensor([[1000.0, 0.0]])
    assert (x.exp() / x.exp().sum()).log().isnan().any()
    assert modules["cross_entropy"].cross_entropy(x, torch.tensor([1])) == 1000.0


# --- layers and gradients ---


def test_linear_is_that_of_torch():
    torch.manual_seed(0)
    own = modules["linear"].Linear(5, 3).double()
    theirs = nn.Linear(5, 3).double()
    theirs.load_state_dict(own.state_dict())  # the same names
    x = randn(4, 2, 5)
    last_bits(own(x), theirs(x))
    assert [name for name, _ in own.named_parameters()] == [name for name, _ in theirs.named_parameters()]
    assert own.weight.abs().max() <= 5**-0.5


def test_linear_backward_is_that_of_torch():
    x, weight = randn(4, 5, requires_grad=True), randn(3, 5, seed=1, requires_grad=True)
    bias, grad_output = randn(3, seed=2, requires_grad=True), randn(4, 3, seed=3)
    F.linear(x, weight, bias).backward(grad_output)
    with torch.no_grad():
        own = modules["linear"].linear_backward(x, weight, grad_output)
    for got, parameter in zip(own, (x, weight, bias), strict=True):
        last_bits(got, parameter.grad)


def test_backpropagation_by_hand_adds_what_autograd_adds():
    torch.manual_seed(0)
    model = modules["classifier"].Perceptron(hidden=16).double()
    x, y = randn(8, 64), torch.arange(8)
    for p in model.parameters():
        p.grad = torch.ones_like(p)  # of an earlier batch
    F.cross_entropy(model.second(F.relu(model.first(x))), y).backward()
    expected = [p.grad for p in model.parameters()]
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    with torch.no_grad():
        modules["backpropagation"].backward(x, y, model.first, model.second)
    for p, gradient in zip(model.parameters(), expected, strict=True):
        last_bits(p.grad, gradient)


# --- steps ---


@pytest.mark.parametrize("max_norm", [0.5, 1e6])
def test_clipping_is_that_of_torch(max_norm):
    own, theirs = ([randn(4, 3, requires_grad=True), randn(3, seed=1, requires_grad=True)] for _ in range(2))
    for parameters in own, theirs:
        for seed, p in enumerate(parameters):
            p.grad = randn(*p.shape, seed=7 + seed)
    norm = modules["clip"].clip_by_global_norm(iter(own), max_norm)
    last_bits(norm, nn.utils.clip_grad_norm_(theirs, max_norm))
    for a, b in zip(own, theirs, strict=True):
        last_bits(a.grad, b.grad)


def test_clipping_leaves_gradients_of_zero_and_does_nothing_where_there_are_none():
    p = torch.zeros(2, requires_grad=True)
    assert modules["clip"].clip_by_global_norm([p], 1.0) == 0
    p.grad = torch.zeros(2)
    modules["clip"].clip_by_global_norm([p], 1.0)
    assert torch.equal(p.grad, torch.zeros(2))


@pytest.mark.parametrize(
    ("piece", "own", "theirs", "options"),
    [
        ("sgd", "SGD", torch.optim.SGD, {"lr": 0.1}),
        ("sgd", "SGD", torch.optim.SGD, {"lr": 0.1, "momentum": 0.9}),
        ("adam", "Adam", torch.optim.Adam, {"lr": 0.1}),
        ("adam", "Adam", torch.optim.Adam, {"lr": 0.1, "betas": (0.5, 0.9), "eps": 1e-3}),
        ("adamw", "AdamW", torch.optim.AdamW, {"lr": 0.1}),
        ("adamw", "AdamW", torch.optim.AdamW, {"lr": 0.1, "weight_decay": 0.3, "betas": (0.5, 0.9)}),
    ],
)
def test_optimizer_takes_the_steps_of_torch(piece, own, theirs, options):
    """Fifty steps, in which one parameter has no gradient at times and the learning rate changes."""
    starts = [randn(4, 3), randn(3, seed=1)]
    optimizers, trained = [], []
    for make in getattr(modules[piece], own), theirs:
        trained.append([start.clone().requires_grad_() for start in starts])
        optimizers.append(make(trained[-1], **options))
    for step in range(50):
        optimizers[0].lr = optimizers[1].param_groups[0]["lr"] = options["lr"] / (1 + step)
        for parameters, optimizer in zip(trained, optimizers, strict=True):
            optimizer.zero_grad()
            parameters[0].grad = randn(4, 3, seed=100 + step)
            if step % 3:
                parameters[1].grad = randn(3, seed=200 + step)
            optimizer.step()
    for a, b, start in zip(*trained, starts, strict=True):
        last_bits(a, b)
        assert (a - start).abs().max() > 0.01


def test_decay_in_the_gradient_is_another_thing_than_decoupled_decay():
    p, q = (torch.tensor([1.0], requires_grad=True) for _ in range(2))
    for parameter in p, q:
        parameter.grad = torch.tensor([1000.0])
    modules["adamw"].AdamW([p], lr=0.1, weight_decay=0.5).step()
    torch.optim.Adam([q], lr=0.1, weight_decay=0.5).step()
    torch.testing.assert_close(p.detach(), torch.tensor([0.85]))
    torch.testing.assert_close(q.detach(), torch.tensor([0.9]))


@pytest.mark.filterwarnings("ignore:The epoch parameter in `scheduler.step:UserWarning")
@pytest.mark.parametrize("end", [0.0, 0.01])
def test_warmup_cosine_is_the_two_schedules_of_torch_in_sequence(end):
    warmup, total = 5, 40
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=0.3)
    rise = LinearLR(optimizer, start_factor=1 / warmup, total_iters=warmup - 1)
    fall = CosineAnnealingLR(optimizer, T_max=total - warmup, eta_min=end)
    schedule = SequentialLR(optimizer, [rise, fall], milestones=[warmup])
    for step in range(total):
        lr = modules["warmup_cosine"].warmup_cosine(step, 0.3, warmup, total, end)
        # torch multiplies each rate with a factor to get the next one, so that rounding adds up
        assert lr == pytest.approx(optimizer.param_groups[0]["lr"], rel=1e-9)
        optimizer.step()
        schedule.step()


@pytest.mark.parametrize(("warmup", "total"), [(0, 4), (4, 4), (0, 1)])
def test_warmup_cosine_is_defined_at_its_edges(warmup, total):
    rates = [modules["warmup_cosine"].warmup_cosine(step, 1.0, warmup, total) for step in range(total + 3)]
    assert max(rates) == 1.0
    assert rates[-1] == pytest.approx(0.0)


# --- data ---


class Permutation(Sampler):
    """A permutation for each pass; torch's `RandomSampler` draws a second one at the end of a pass and drops it."""

    def __init__(self, samples, seed):
        self.samples, self.generator = samples, torch.Generator().manual_seed(seed)

    def __len__(self):
        return self.samples

    def __iter__(self):
        return iter(torch.randperm(self.samples, generator=self.generator).tolist())


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("samples", [20, 21, 2])
def test_loader_gives_the_batches_of_torch_in_every_pass(samples, shuffle, drop_last):
    x, y = torch.arange(samples * 2.0).view(-1, 2), torch.arange(samples)
    own = modules["loader"].Loader(
        x, y, batch_size=4, shuffle=shuffle, drop_last=drop_last, generator=torch.Generator().manual_seed(3)
    )
    sampler = Permutation(samples, seed=3) if shuffle else None
    theirs = DataLoader(TensorDataset(x, y), batch_size=4, sampler=sampler, drop_last=drop_last)
    assert len(own) == len(theirs)
    for _ in range(3):
        passes = list(own), list(theirs)
        assert len(passes[0]) == len(passes[1]) == len(own)
        for (a, b), (c, d) in zip(*passes, strict=True):
            assert torch.equal(a, c)
            assert torch.equal(b, d)


# --- all of it ---


def trained(by_hand, epochs=2):
    classifier = modules["classifier"]
    torch.manual_seed(0)
    x, y = classifier.digits()
    model = classifier.Perceptron().double()
    loader = modules["loader"].Loader(
        x.double()[:1347], y[:1347], batch_size=64, shuffle=True, generator=torch.Generator().manual_seed(0)
    )
    losses = list(classifier.train(model, loader, epochs, by_hand=by_hand))
    return model, losses


def twin(epochs=2):
    """Train the same model with the counterparts in torch."""
    classifier = modules["classifier"]
    torch.manual_seed(0)
    x, y = classifier.digits()
    start = classifier.Perceptron().double().state_dict()
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)).double()
    for name, layer in ("first", model[0]), ("second", model[2]):
        layer.load_state_dict({key: start[f"{name}.{key}"] for key in ("weight", "bias")})
    data = TensorDataset(x.double()[:1347], y[:1347])
    loader = DataLoader(data, batch_size=64, sampler=Permutation(len(data), seed=0))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    step, total = 0, epochs * len(loader)
    for _ in range(epochs):
        for inputs, targets in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            lr = modules["warmup_cosine"].warmup_cosine(step, 1e-2, total // 10, total)
            optimizer.param_groups[0]["lr"] = lr
            optimizer.step()
            step += 1
    return model


@pytest.mark.parametrize("by_hand", [False, True])
def test_classifier_has_the_weights_of_its_twin_in_torch(by_hand):
    """After 44 steps, each of which works on the rounding of the one before: 1e-9 of weights that are about 0.1."""
    (own, losses), theirs = trained(by_hand), twin()
    for a, b in zip(own.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)
    assert losses[-1] < 0.7 * losses[0]


@pytest.mark.parametrize("arguments", [(), ("--by-hand",)], ids=["autograd", "by-hand"])
def test_classifier_learns_and_is_quiet_under_supervision(arguments):
    run = supervise(FOLDER / "classifier.py", "--epochs", "8", *arguments)
    assert run.how == "finished", str(run)
    assert run.findings == [], str(run)
    assert run.errors == [], str(run)
    assert float(re.findall(r"accuracy ([\d.]+)%", run.output)[-1]) > 95, str(run)


# --- for readers ---


@pytest.mark.parametrize("name", PIECES)
def test_piece_is_short_and_what_its_docstrings_say_is_so(name):
    path = FOLDER / f"{name}.py"
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST
    assert doctest.testmod(modules[name]).failed == 0


@pytest.mark.parametrize("name", sorted(set(PIECES) - {"classifier"}))
def test_piece_names_its_source_and_is_listed(name):
    assert "Source: " in (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    assert f"`{name}.py`" in (FOLDER / "README.md").read_text(encoding="utf-8")
