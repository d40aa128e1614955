# ruff: noqa: F841, RUF059
"""Results that nothing reads: the source of the functions on the stack, and the values in their frames."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn
from torch.nn import functional as F
from torch.nn.functional import normalize

from truestep import events as ev
from truestep.testing import capture_events

MODEL = nn.Linear(6, 3)
OPTIMIZER = torch.optim.SGD(MODEL.parameters(), lr=0.01)
X, Y = torch.randn(40, 6), torch.randint(0, 3, (40,))
KEPT = []


def step(loss):
    OPTIMIZER.zero_grad()
    loss.backward()
    OPTIMIZER.step()


def noisy(x):
    return x + 0.1 * torch.randn_like(x)


def kept(x):
    KEPT.append(x)
    return x * 2


def reads(train):
    with capture_events() as events:
        train()
    return [(event.name, event.kind, event.again) for event in events if isinstance(event, ev.ValueUnread)]


def mask_of_each_step():
    for _ in range(8):
        known = Y > 0
        losses = F.cross_entropy(MODEL(X), Y, reduction="none")
        step(losses.mean())


def mask_made_once():
    trained = torch.zeros(40, dtype=torch.bool)
    trained[:20] = True
    for _ in range(8):
        step(F.cross_entropy(MODEL(X), Y))


def view_of_each_step():
    for _ in range(8):
        one, two = noisy(X), noisy(X)
        step(F.cross_entropy(MODEL(one), Y))


def view_by_the_name_of_a_function():
    for _ in range(8):
        unit = normalize(noisy(X))
        step(F.cross_entropy(MODEL(X), Y))


def result_with_a_graph():
    for _ in range(8):
        out = MODEL(X)
        penalty = out.square().mean()
        step(F.cross_entropy(out, Y))


def weights_by_name():
    for _ in range(8):
        fast = {name: value - 0.1 * value for name, value in MODEL.named_parameters()}
        step(F.cross_entropy(MODEL(X), Y))


def losses_masked_in_vain():
    for _ in range(8):
        losses = F.cross_entropy(MODEL(X), Y, reduction="none")
        total = losses.mean()
        scaled = losses * 2
        scaled = scaled * (Y > 0)
        step(total)


def loss_of_a_function():
    def loss_of(x, y):
        weights = torch.rand(len(x))
        return F.cross_entropy(MODEL(x), y)

    for _ in range(8):
        step(loss_of(X, Y))


def sampler_without_a_loader():
    sampler = torch.utils.data.WeightedRandomSampler(torch.rand(40), 40)
    for _ in range(8):
        step(F.cross_entropy(MODEL(X), Y))


def weights_of_classes():
    weights = torch.tensor([0.2, 0.3, 0.5])
    for _ in range(8):
        step(F.cross_entropy(MODEL(X), Y))


def fill_that_is_dropped():
    for _ in range(8):
        out = MODEL(X)
        out.masked_fill(Y[:, None] > 0, 0.0)
        step(F.cross_entropy(out, Y))


def clip_of_weights_that_is_dropped():
    for _ in range(8):
        step(F.cross_entropy(MODEL(X), Y))
        for weight in MODEL.parameters():
            weight.data.clamp(-1.0, 1.0)


def update_of_the_variable_of_a_loop():
    for _ in range(8):
        step(F.cross_entropy(MODEL(X), Y))
        for weight in MODEL.parameters():
            weight = weight - 0.1 * weight.grad
        for weight in MODEL.parameters():
            weight.grad = None


def average_in_the_variable_of_a_loop():
    others = [torch.zeros_like(weight) for weight in MODEL.parameters()]
    for _ in range(8):
        step(F.cross_entropy(MODEL(X), Y))
        for other, weight in zip(others, MODEL.parameters(), strict=True):
            other = 0.9 * other + 0.1 * weight.detach()


def descent(weights, rate):
    with torch.no_grad():
        for weight in weights:
            weight = weight - rate * weight.grad


def update_in_a_function():
    rate, weights = 0.1, list(MODEL.parameters())
    for _ in range(8):
        step(F.cross_entropy(MODEL(X), Y))
        descent(weights, rate)


def division_that_is_dropped():
    for _ in range(8):
        loss = F.cross_entropy(MODEL(X), Y)
        loss / 4
        step(loss)


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.head = nn.Linear(6, 6), nn.Linear(6, 3)

    def forward(self, x):
        hidden = self.layer(x)
        gate = hidden > 0
        return self.head(hidden)


def mask_inside_of_a_model():
    model = Masked()
    for _ in range(8):
        F.cross_entropy(model(X), Y).backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.01 * parameter.grad
                parameter.grad = None


def mean_of(losses, mask=None, padded=None):
    return losses.mean()


def masked_mean(losses, mask):
    return (losses * mask).sum() / mask.sum()


def mask_for_a_function():
    for _ in range(8):
        known = Y > 0
        step(mean_of(F.cross_entropy(MODEL(X), Y, reduction="none"), known))


def mask_by_a_keyword():
    for _ in range(8):
        ends = (Y > 1).float()
        step(mean_of(F.cross_entropy(MODEL(X), Y, reduction="none"), padded=ends))


@pytest.mark.parametrize(
    ("train", "expected"),
    [
        (mask_of_each_step, ("known", "mask", True)),
        (mask_made_once, ("trained", "mask", False)),
        (view_of_each_step, ("two", "values", True)),
        (view_by_the_name_of_a_function, ("unit", "values", True)),
        (result_with_a_graph, ("penalty", "graph", True)),
        (weights_by_name, ("fast", "graph", True)),
        (losses_masked_in_vain, ("scaled", "graph", True)),
        (loss_of_a_function, ("weights", "values", True)),
        (sampler_without_a_loader, ("sampler", "sampler", False)),
        (weights_of_classes, ("weights", "weights", False)),
        (fill_that_is_dropped, ("", "masked_fill", True)),
        (update_of_the_variable_of_a_loop, ("weight", "rebound", True)),
        (average_in_the_variable_of_a_loop, ("other", "rebound", True)),
        (update_in_a_function, ("weight", "rebound", True)),
        (clip_of_weights_that_is_dropped, ("", "clamp", True)),
        (division_that_is_dropped, ("", "expression", True)),
        (mask_inside_of_a_model, ("gate", "mask", True)),
        (mask_for_a_function, ("mask", "argument", True)),
        (mask_by_a_keyword, ("padded", "argument", True)),
    ],
)
def test_a_result_that_nothing_reads_is_seen(train, expected):
    assert reads(train) == [expected]


def variables_of_loops_that_are_read():
    rates, made = [torch.tensor(0.1), torch.tensor(0.2)], []
    for _ in range(8):
        for part in (X, -X):
            part = 2 * part
            step(F.cross_entropy(MODEL(part), Y))
        for part in (X, -X):
            part = MODEL(part)
        for weight in MODEL.parameters():
            weight = weight.grad.norm().item()
        if not rates:
            for weight in MODEL.parameters():
                weight = weight - 0.1 * weight.grad
        for rate in rates:
            rate = rate * 2
            made.append(rate)
        for weight in MODEL.parameters():
            weight = weight - 0.1 * weight.grad
        print(weight.shape)


def weights_that_are_clipped():
    for _ in range(8):
        step(F.cross_entropy(MODEL(X), Y))
        for weight in MODEL.parameters():
            weight.data.clamp_(-1.0, 1.0)
            weight.grad.zero_()


def mask_that_is_read():
    for _ in range(8):
        known = Y > 0
        step(masked_mean(F.cross_entropy(MODEL(X), Y, reduction="none"), known))


def mask_of_ones():
    for _ in range(8):
        known = Y >= 0
        step(mean_of(F.cross_entropy(MODEL(X), Y, reduction="none"), known))


def one_of_several_functions():
    for reduce in (mean_of, masked_mean):
        for _ in range(8):
            known = Y > 0
            step(reduce(F.cross_entropy(MODEL(X), Y, reduction="none"), known))


def read_by_a_function():
    for _ in range(8):
        known = Y > 0

        def loss():
            return F.cross_entropy(MODEL(X), Y, reduction="none")[known].mean()

        step(loss())


def read_as_text():
    for _ in range(8):
        known = Y > 0
        step(F.cross_entropy(MODEL(X), Y))
        assert len(locals()["known"]) == 40


def parts_of_a_result():
    for _ in range(8):
        values, places = MODEL(X).max(1)
        step(values.mean())


def another_name():
    for _ in range(8):
        x = noisy(X)
        same = x.view(40, 6)
        step(F.cross_entropy(MODEL(x), Y))


def with_an_effect():
    for _ in range(8):
        doubled = kept(noisy(X))
        step(F.cross_entropy(MODEL(X), Y))
    KEPT.clear()


def written_through():
    for _ in range(8):
        x = noisy(X)
        part = x[:20]
        part[:] = 0
        step(F.cross_entropy(MODEL(x), Y))


def named_as_unused():
    for _ in range(8):
        _known = Y > 0
        step(F.cross_entropy(MODEL(X), Y))


def a_choice():
    for _ in range(8):
        out = MODEL(X)
        best = out.argmax(1)
        step(F.cross_entropy(out, Y))


def labels_in_another_place():
    for _ in range(8):
        batch = [X.clone(), torch.arange(len(X)) % 3]
        pictures, labels = batch
        labels = labels.to("cpu")
        step(MODEL(pictures).square().mean())


def by_hooks():
    features = []
    handle = MODEL.register_forward_hook(lambda module, args, out: features.append(out))
    for _ in range(8):
        out = MODEL(X)
        step(features.pop().square().mean())
    handle.remove()


def measured_in_one_step():
    def measure():
        loss = F.cross_entropy(MODEL(X), Y)

    for number in range(8):
        if number == 2:
            for _ in range(10):
                measure()
        step(F.cross_entropy(MODEL(X), Y))


def steps_of_a_function():
    def once():
        loss = F.cross_entropy(MODEL(X), Y)
        step(loss)
        return loss

    for _ in range(8):
        loss = once()


@pytest.mark.parametrize(
    "train",
    [
        variables_of_loops_that_are_read,
        weights_that_are_clipped,
        mask_that_is_read,
        mask_of_ones,
        one_of_several_functions,
        read_by_a_function,
        read_as_text,
        parts_of_a_result,
        another_name,
        with_an_effect,
        written_through,
        named_as_unused,
        a_choice,
        labels_in_another_place,
        by_hooks,
        measured_in_one_step,
        steps_of_a_function,
    ],
)
def test_a_result_that_may_be_read_is_not(train):
    assert reads(train) == []


def momentum(ps, gs, velocity):
    with torch.no_grad():
        for p, g, v in zip(ps, gs, velocity, strict=False):
            v = 0.9 * v + g
            p.sub_(0.01 * v)


def momentum_kept(ps, gs, kept):
    with torch.no_grad():
        for place, (p, g, v) in enumerate(zip(ps, gs, kept, strict=False)):
            v = 0.9 * v + g
            kept[place] = v
            p.sub_(0.01 * v)


def scaled(ps, gs, rates):
    with torch.no_grad():
        for p, g, rate in zip(ps, gs, rates, strict=False):
            rate = rate * 0.1
            p.sub_(rate * g)


def test_a_momentum_that_is_lost_is_found():
    def train(update, state):
        torch.manual_seed(0)
        ps = [torch.randn(4, 1).requires_grad_(), torch.zeros(1, requires_grad=True)]
        x = torch.randn(16, 4)
        with capture_events() as events:
            for _ in range(8):
                gs = torch.autograd.grad((x @ ps[0] + ps[1] - 1).square().mean(), ps)
                update(ps, gs, state)
        return [event for event in events if isinstance(event, ev.ValueUnread)]

    ps = [torch.randn(4, 1), torch.zeros(1)]
    velocity = [torch.zeros_like(p) for p in ps]
    (found,) = train(momentum, velocity)
    assert (found.name, found.kind) == ("v", "rebound")
    kept = [torch.zeros_like(p) for p in ps]
    assert not train(momentum_kept, kept)
    assert not train(scaled, [0.1, 0.1])
