"""Terms of a loss without a gradient: the tape, the source and the values of the frame must agree."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn

from truestep import events as ev
from truestep.testing import capture_events

MODEL = nn.Linear(4, 1)
X = torch.ones(8, 4)
OTHER = nn.Linear(4, 1)


def reads(train):
    with capture_events() as events:
        for _ in range(3):
            train()
    return [event for event in events if isinstance(event, ev.TermsRead)]


def penalty_of(out):
    with torch.no_grad():
        return out.square().mean()


def detached():
    out = MODEL(X)
    loss = out.mean() + (0.1 * out.square().mean()).detach()
    loss.backward()


def beside_a_comparison():
    out, wanted = MODEL(X), X[:, :1] > 0.5
    loss = out.mean()
    loss = loss + (0.1 * (out - wanted.float()).square().mean()).detach()
    loss.backward()


def of_another_part():
    """The optimizer of the model holds the other part as well."""
    torch.optim.SGD([*MODEL.parameters(), *OTHER.parameters()], lr=0.1)
    loss = MODEL(X).mean() + (0.1 * OTHER(X).square().mean()).detach()
    loss.backward()


def by_function():
    out = MODEL(X)
    extra = penalty_of(out)
    loss = out.mean() + 0.1 * extra
    loss.backward()


def in_a_block():
    out = MODEL(X)
    with torch.no_grad():
        extra = out.square().mean()
    loss = out.mean()
    loss += 0.5 * extra
    (loss / 2).backward()


def as_a_number():
    out = MODEL(X)
    total = out.mean() - out.std().item()
    torch.autograd.backward(total)


def sum_of(out):
    size = out.square().mean()
    return out.mean() + size.item()


def returned_by_a_function():
    total = sum_of(MODEL(X)) / 2
    total.backward()


def of_a_model_on_detached_input():
    loss = nn.functional.mse_loss(MODEL(X).detach(), X[:, :1]) + MODEL(2 * X).mean()
    loss.backward()


def overlap(chosen, label):
    return 1 - 2 * (chosen * label).sum() / (chosen.sum() + label.sum() + 1)


def thresholded():
    out, label = MODEL(X), (X[:, :1] > 0.5).float()
    loss = out.square().mean() + overlap((out > 0).float(), label)
    loss.backward()


def thresholded_by_name():
    out, label = MODEL(X), X[:, :1]
    chosen = (out.sigmoid() > 0.5).float()
    both = (chosen * label).sum()
    extra = 1 - both / label.sum()
    loss = out.square().mean() + 0.5 * extra
    loss.backward()


def chosen_beside_a_gradient():
    out = MODEL(X)
    loss = nn.functional.mse_loss(out, (out > 0).float()) + X.mean()
    loss.backward()


def straight_through_a_threshold():
    out = MODEL(X)
    hard = (out > 0).float()
    through = out.sigmoid() + (hard - out.sigmoid()).detach()
    loss = overlap(through, X[:, :1]) + X.mean()
    loss.backward()


def penalty_of_gradients(model):
    x = torch.ones(2, 4, requires_grad=True)
    (gradient,) = torch.autograd.grad(model(x).sum(), x)
    return gradient.square().mean()


def without_create_graph():
    penalty = penalty_of_gradients(MODEL)
    loss = MODEL(X).mean() + 10 * penalty
    loss.backward()


@pytest.mark.parametrize(
    ("train", "cut", "name"),
    [
        (returned_by_a_function, ".item()", ""),
        (of_a_model_on_detached_input, ".detach()", ""),
        (without_create_graph, "", "penalty"),
        (detached, ".detach()", ""),
        (beside_a_comparison, ".detach()", ""),
        (of_another_part, ".detach()", ""),
        (by_function, "", "extra"),
        (in_a_block, "torch.no_grad()", "extra"),
        (as_a_number, ".item()", ""),
        (thresholded, "out > 0", ""),
        (thresholded_by_name, "out.sigmoid() > 0.5", ""),
    ],
)
def test_a_term_that_is_cut(train, cut, name):
    found = reads(train)
    assert [(event.cut, event.name) for event in found] == [(cut, name)] * 3
    assert found[0].place.path == __file__


def value_replaced():
    out = MODEL(X)
    surrogate = out.mean()
    loss = surrogate + (out.round().mean() - surrogate).detach()
    loss.backward()


def of_another_network():
    fake, real = MODEL(X), nn.Linear(4, 1)(X)
    loss = real.mean().detach() - fake.mean()
    loss.backward()


def without_inputs_that_have_gradients():
    with torch.no_grad():
        real = MODEL(X).mean()
    loss = real - MODEL(X).mean()
    loss.backward()


def weights_and_targets():
    out = MODEL(X)
    weight = out.std().detach()
    loss = weight * out.mean() + nn.functional.mse_loss(out, out.detach() + 1)
    loss.backward()


def a_constant():
    offset = torch.tensor(2.0)
    loss = MODEL(X).mean() + offset + 1.0
    loss.backward()


def printed_only():
    out = MODEL(X)
    loss = out.mean()
    total = loss + out.square().mean().detach()
    loss.backward()
    assert total.requires_grad


@pytest.mark.parametrize(
    "train",
    [
        value_replaced, of_another_network, without_inputs_that_have_gradients, weights_and_targets, a_constant,
        printed_only, chosen_beside_a_gradient, straight_through_a_threshold,
    ],
)  # fmt: skip
def test_terms_that_need_no_gradient(train):
    assert reads(train) == []


def test_a_term_that_gets_a_gradient_later():
    steps = iter(range(3))

    def warm():
        out = MODEL(X)
        extra = out.square().mean()
        if next(steps) < 1:
            extra = out.square().mean().detach()
        loss = out.mean() + extra
        loss.backward()

    assert [event.cut for event in reads(warm)] == [".detach()", "", ""]


@pytest.mark.parametrize("both", [False, True], ids=["parts in turn", "one part in turn"])
def test_terms_that_take_turns_are_not_reported(both):
    steps = iter(range(3))

    def turn():
        one, two = MODEL(X).mean(), OTHER(X).mean() + (MODEL(X).std() if both else 0.0)
        if next(steps) % 2:
            loss = one.detach() + two
        else:
            loss = one + two.detach()
        loss.backward()

    torch.optim.SGD([*MODEL.parameters(), *OTHER.parameters()], lr=0.1)
    assert all(event.place is None for event in reads(turn)[1:])


CLASSIFIER, LABELS = nn.Linear(4, 3), torch.arange(8) % 3


def hard_overlap(logits, target, smooth=1.0):
    _, chosen = torch.max(logits, 1)
    prob = nn.functional.one_hot(chosen, 3).float()
    wanted = nn.functional.one_hot(target.masked_fill(target < 0, 0), 3).float()
    prob, wanted = prob * 1.0, wanted * 1.0
    return 1 - ((2 * (prob * wanted).sum() + smooth) / (prob.sum() + wanted.sum() + smooth)).mean()


def both_terms(logits, target):
    entropy = nn.functional.cross_entropy(logits, target)
    return entropy + 0.5 * hard_overlap(logits, target)


class Criterion(nn.Module):
    def __init__(self, learned=False):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(())) if learned else 1.0

    def wrong(self, logits, target):
        logits = logits.argmax(dim=1)
        return self.scale * (logits != target).float().mean()

    def forward(self, logits, target):
        return nn.functional.cross_entropy(logits, target) + self.wrong(logits, target) + 1.0


def with_gradient(logits, target):
    hard = nn.functional.one_hot(logits.argmax(1), 3).float()
    soft = logits.softmax(1)
    return ((hard + soft - soft.detach()) * nn.functional.one_hot(target, 3)).sum()


def of_targets(logits, target):
    return (target > 0).float().mean()


def hard_term():
    loss = both_terms(CLASSIFIER(X), LABELS)
    loss.backward()


def hard_term_outside():
    logits = CLASSIFIER(X)
    loss = nn.functional.cross_entropy(logits, LABELS)
    loss += hard_overlap(logits, target=LABELS)
    loss.backward()


def hard_term_of_a_criterion():
    criterion = Criterion()
    loss = criterion(CLASSIFIER(X), LABELS)
    loss.backward()


def criterion_with_a_parameter():
    criterion = Criterion(learned=True)
    loss = criterion(CLASSIFIER(X), LABELS)
    loss.backward()


def straight_through_in_a_function():
    logits = CLASSIFIER(X)
    loss = nn.functional.cross_entropy(logits, LABELS) + with_gradient(logits, LABELS) + 1.0
    loss.backward()


OF_ROWS = lambda x: MODEL(x).square()  # noqa: E731


def masked_energy(logits, energy):
    return (energy * (logits > 0).float()[:, :1]).mean()


def of_rows(logits, x):
    return (OF_ROWS(x) * (logits > 0).float()[:, :1]).mean()


def closure_over(model):
    return lambda x: model(x).square()


ENERGY = closure_over(MODEL)


def of_energy(logits, x):
    return (ENERGY(x) * (logits > 0).float()[:, :1]).mean()


def drawn(chance, noise):
    return (noise < chance).float().mean()


def trained_by_a_lambda():
    logits, parts = CLASSIFIER(X), [CLASSIFIER.bias.sum(), X.mean()]
    loss = parts[0] + parts[1]
    loss = loss + of_rows(logits, X)
    loss.backward()


def trained_by_a_closure():
    logits, parts = CLASSIFIER(X), [CLASSIFIER.bias.sum(), X.mean()]
    loss = parts[0] + parts[1]
    loss = loss + of_energy(logits, X)
    loss.backward()


def trained_by_a_closure_of_the_script():
    logits, energy = CLASSIFIER(X), closure_over(MODEL)
    loss = CLASSIFIER.bias.sum() + X.mean() + masked_energy(logits, energy(X))
    loss.backward()


def price_of_a_draw():
    chance = CLASSIFIER(X).sigmoid()
    noise = torch.rand(8, 3)
    loss = chance.log().mean() + drawn(chance, noise)
    loss.backward()


def choices_of_targets():
    logits = CLASSIFIER(X)
    loss = nn.functional.cross_entropy(logits, LABELS) + of_targets(logits, LABELS)
    loss.backward()


def choices_of_a_detached_output():
    logits = CLASSIFIER(X)
    fixed = logits.detach()
    loss = nn.functional.cross_entropy(logits, LABELS) + hard_overlap(fixed, LABELS)
    loss.backward()


@pytest.mark.parametrize(
    ("train", "cut"),
    [
        (hard_term, "torch.max(logits, 1)[1]"),
        (hard_term_outside, "torch.max(logits, 1)[1]"),
        (hard_term_of_a_criterion, "logits != target"),
    ],
)
def test_a_term_that_a_function_computes_from_choices(train, cut):
    events = reads(train)
    assert [event.cut for event in events] == [cut] * 3
    assert events[0].place.function in ("hard_overlap", "wrong")


@pytest.mark.parametrize(
    "train",
    [
        criterion_with_a_parameter, straight_through_in_a_function, choices_of_targets, choices_of_a_detached_output,
        trained_by_a_lambda, trained_by_a_closure, trained_by_a_closure_of_the_script, price_of_a_draw,
    ],
)  # fmt: skip
def test_functions_with_a_gradient_and_choices_of_values_without_one(train):
    assert reads(train) == []
