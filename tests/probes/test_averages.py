"""Figures of evaluations by meaning: averages over batches, sizes of errors, scales of both sides."""

import ast

import numpy as np
import pytest
import torch
from tiers import few
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from truestep.events import ResultCompared
from truestep.probes.evaluation.averages import divisions, leaves_first
from truestep.testing import capture_events

X = torch.randn(400, 5, generator=torch.Generator().manual_seed(0))
Y = X @ torch.tensor([1.0, -2.0, 0.5, 1.0, 0.3])
LABELS = (Y > 0).long()
PADDED = torch.where(torch.arange(400) % 4 == 0, 0, LABELS + 1)
PRICES = (Y * 50 + 300).numpy()
MEAN, SPREAD = np.float64(300.0), np.float64(50.0)
DATA = TensorDataset(X, Y)
LOADER = DataLoader(DATA, batch_size=50)
criterion = nn.MSELoss()


def batches():
    return zip(X.split(50), Y.split(50), strict=True)


def means_by_samples(model):
    total = n = 0
    for x, y in batches():
        total += criterion(model(x).squeeze(1), y).item()
        n += len(x)
    return total / n


def means_by_data(model):
    total = 0.0
    for x, y in LOADER:
        loss = F.l1_loss(model(x).squeeze(1), y)
        total = total + loss
    total /= len(LOADER.dataset)
    return total


def means_in_a_list(model):
    losses = []
    for start in range(0, 400, 50):
        loss = F.mse_loss(model(X[start : start + 50])[:, 0], Y[start : start + 50])
        losses.append(loss.item())
    return sum(losses) / len(DATA)


def roots_by_samples(model):
    total, n = 0.0, 0
    for x, y in batches():
        total += ((model(x)[:, 0] - y) ** 2).mean().sqrt().item()
        n += y.size(0)
    return total / n


ROWS = list(zip(X, Y, strict=True))


def means_by_items(model):
    total = 0.0
    for start in range(0, len(ROWS), 50):
        x, y = (torch.stack(part) for part in zip(*ROWS[start : start + 50], strict=True))
        total += criterion(model(x).squeeze(1), y).item()
    return total / len(ROWS)


def means_by_all_but_one(model):
    total = 0.0
    for start in range(0, len(X) - 1, 50):
        total += criterion(model(X[start : start + 50]).squeeze(1), Y[start : start + 50]).item()
    return total / (len(X) - 1)


class Meter:
    def __init__(self):
        self.loss, self.total, self.n = nn.SmoothL1Loss(), 0.0, 0

    def __call__(self, model):
        for x, y in batches():
            with torch.no_grad():
                self.total += self.loss(model(x).squeeze(1), y).item()
                self.n += x.shape[0]
        return self.total / self.n


def first_batch(model):
    total, n = 0.0, 0
    for x, y in zip(X.split(50), Y.split(50), strict=True):
        total += (model(x).squeeze(1) - y).abs().sum().item()
        n += len(y)
        return total / n
    return None


def cancelled(model):
    total = 0.0
    for x, y in batches():
        total += (model(x).squeeze(1) - y).mean().abs().item()
    return total / 8


def cancelled_square(model):
    return float((Y - model(X).squeeze(1)).mean() ** 2)


def spread_of_predictions(model):
    p = model(X).squeeze(1).numpy() * SPREAD + MEAN
    return 1 - ((PRICES - p) ** 2).sum() / ((p - p.mean()) ** 2).sum()


def another_scale(model):
    p = model(X).squeeze(1).numpy()
    return np.abs(p - PRICES).mean()


def another_scale_in_a_loss(model):
    p = model(X).squeeze(1) * 3 + 7
    return criterion(p, torch.from_numpy(PRICES))


def one_object(model):
    model(X)
    chosen = LABELS
    return (chosen == LABELS).float().mean()


def one_call_twice(model):
    total = 0.0
    for x, _ in batches():
        wanted = model(x) * 2
        found = model(x) * 2
        total += (found - wanted).abs().sum().item()
    return total


def compared(evaluate, *, classes=0, ignored=-100):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, classes or 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    with capture_events() as events:
        for _ in range(80):
            optimizer.zero_grad()
            out = model(X)
            loss = F.cross_entropy(out, PADDED, ignore_index=ignored) if classes else F.mse_loss(out.squeeze(1), Y)
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            evaluate(model)
    return {event.how for event in events if isinstance(event, ResultCompared)} - {""}


MISTAKEN = [
    (means_by_samples, "means"),
    (means_by_data, "means"),
    (means_in_a_list, "means"),
    (means_by_items, "means"),
    (means_by_all_but_one, "means"),
    (roots_by_samples, "means"),
    (Meter(), "means"),
    (first_batch, "first"),
    (cancelled, "cancelled"),
    (cancelled_square, "cancelled"),
    (spread_of_predictions, "spread"),
    (another_scale, "scale"),
    (another_scale_in_a_loss, "scale"),
    (one_object, "itself"),
    (one_call_twice, "itself"),
]


@pytest.mark.parametrize(
    ("evaluate", "how"),
    few(3, MISTAKEN),
    ids=lambda value: getattr(value, "__name__", str(value)[:10]),
)
def test_the_mistake_of_a_figure_is_named(evaluate, how):
    assert compared(evaluate) == {how}


def means_by_words(model):
    total = n = 0
    for x, y in zip(X.split(50), PADDED.split(50), strict=True):
        total += F.cross_entropy(model(x), y, ignore_index=0).item()
        n += (y != 0).sum().item()
    return total / n


def padded_share(model):
    right = n = 0
    for x, y in zip(X.split(50), PADDED.split(50), strict=True):
        right += (model(x).argmax(1) == y).sum().item()
        n += y.numel()
    return right / n


def padded_mean(model):
    return (model(X).argmax(1) == PADDED).float().mean()


def masked_share(model):
    right = n = 0
    for x, y in zip(X.split(50), PADDED.split(50), strict=True):
        real = y != 0
        right += ((model(x).argmax(1) == y) & real).sum().item()
        n += real.sum().item()
    return right / n


def counts_by_batches(model):
    right = n = 0
    for x, y in zip(X.split(50), PADDED.split(50), strict=True):
        right += (model(x).argmax(1) == y).sum().item()
        n += 1
    return right / n


def means_of_shares(model):
    shares = []
    for x, y in zip(X.split(50), PADDED.split(50), strict=True):
        shares.append((model(x).argmax(1) == y)[y != 0].float().mean().item())
    return sum(shares) / len(shares)


@pytest.mark.program
@pytest.mark.parametrize("evaluate", [padded_mean, padded_share], ids=lambda value: value.__name__)
def test_padding_counts_in_a_metric_and_not_in_the_loss(evaluate):
    assert "padding" in compared(evaluate, classes=3, ignored=0)
    assert compared(evaluate, classes=3) == set()


def epoch_by_samples(model, optimizer):
    running = 0.0
    for x, y in LOADER:
        optimizer.zero_grad()
        loss = criterion(model(x).squeeze(1), y)
        loss.backward()
        optimizer.step()
        running += loss.item()
    return running / len(DATA)


def epoch_by_batches(model, optimizer):
    running = batches = 0
    for x, y in LOADER:
        optimizer.zero_grad()
        loss = criterion(model(x).squeeze(1), y)
        loss.backward()
        optimizer.step()
        running += loss.item()
        batches += 1
    return running / batches


def weighted_epoch(model, optimizer):
    running = 0.0
    for x, y in LOADER:
        optimizer.zero_grad()
        loss = criterion(model(x).squeeze(1), y)
        loss.backward()
        optimizer.step()
        running += loss.item() * x.size(0)
    return running / len(LOADER.dataset)


@pytest.mark.parametrize(
    ("epoch", "how"),
    [(epoch_by_samples, {"means"}), (epoch_by_batches, set()), (weighted_epoch, set())],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_the_average_of_a_training_loss_has_a_divisor_of_its_kind(epoch, how):
    torch.manual_seed(0)
    model = nn.Linear(5, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with capture_events() as events:
        for _ in range(3):
            epoch(model, optimizer)
    assert {event.how for event in events if isinstance(event, ResultCompared)} == how


def test_counts_divided_by_batches_are_named():
    assert compared(counts_by_batches, classes=3) == {"counts"}


def counts_by_tensors(model, part=(X, LABELS)):
    hits = 0
    for rows in torch.arange(len(part[0])).split(50):
        hits += (model(X[rows]).argmax(1) == LABELS[rows]).sum().item()
    return hits / len(part)


def test_counts_divided_by_a_number_of_tensors_are_named():
    assert compared(counts_by_tensors, classes=3) == {"tensors"}


def test_means_divided_by_words_are_named():
    assert compared(means_by_words, classes=3, ignored=0) == {"means"}


@pytest.mark.parametrize("evaluate", [masked_share, means_of_shares], ids=lambda value: value.__name__)
def test_a_metric_without_padding_is_sound(evaluate):
    assert compared(evaluate, classes=3, ignored=0) == set()


def sums_by_samples(model):
    total = n = 0
    for x, y in batches():
        total += criterion(model(x).squeeze(1), y).item() * len(x)
        n += len(x)
    return total / n


def sum_reduction(model):
    total = 0.0
    for x, y in LOADER:
        total += F.mse_loss(model(x).squeeze(1), y, reduction="sum").item()
    return total / len(LOADER.dataset)


def means_by_batches(model):
    total = 0.0
    for x, y in LOADER:
        total += criterion(model(x).squeeze(1), y).item()
    return total / len(LOADER)


def over_a_list_of_batches(model):
    held = list(batches())
    total = 0.0
    for x, y in held:
        total += criterion(model(x).squeeze(1), y).item()
    return total / len(held)


def counted_again(model):
    total = 0.0
    for x, y in batches():
        total += criterion(model(x).squeeze(1), y).item()
    total = total / 8
    for _ in range(2):
        total = 1.0
    return total / len(DATA)


def one_sample_at_a_time(model):
    total = n = 0
    for x, y in zip(X[:20].split(1), Y[:20].split(1), strict=True):
        total += criterion(model(x).squeeze(1), y).item()
        n += len(x)
    return total / n


PAGES = TensorDataset(X[:40].unflatten(0, (8, 5)), Y[:40].unflatten(0, (8, 5)))


def one_page_at_a_time(model, size=None):
    total = 0.0
    for x, y in DataLoader(PAGES, batch_size=size, shuffle=True):
        total += criterion(model(x.flatten(0, -2)).squeeze(1), y.flatten()).item()
    return total / len(PAGES)


def one_page_of_a_loader(model):
    total, loader = 0.0, DataLoader(PAGES, batch_size=None)
    for x, y in loader:
        total += criterion(model(x).squeeze(1), y).item()
    return total / len(PAGES)


def sizes_of_lists(model):
    pairs = list(zip(X[:60].split(4), Y[:60].split(4), strict=True))
    total, data_size = 0.0, len(pairs)
    for x, y in pairs:
        total += criterion(model(x).squeeze(1), y).item()
    return total / data_size


def leaves_under_a_condition(model):
    total, n = 0.0, 0
    for x, y in zip(X.split(50), Y.split(50), strict=True):
        total += (model(x).squeeze(1) - y).abs().sum().item()
        n += len(y)
        if n > 100:
            break
    return total / n


def only_batch(model):
    total, n = 0.0, 0
    for x, y in zip(X.split(400), Y.split(400), strict=True):
        total += (model(x).squeeze(1) - y).abs().sum().item()
        n += len(y)
        return total / n
    return None


def only_pair(model):
    total, n = 0.0, 0
    for x, y in zip(X.split(50), [Y[:50]], strict=False):
        total += (model(x).squeeze(1) - y).abs().sum().item()
        n += len(y)
        return total / n
    return None


def bias(model):
    return float((model(X).squeeze(1) - Y).mean())


def in_prices(model):
    p = model(X).squeeze(1).numpy() * SPREAD + MEAN
    r2 = 1 - ((PRICES - p) ** 2).sum() / ((PRICES - PRICES.mean()) ** 2).sum()
    return r2, np.sqrt(((p - PRICES) ** 2).mean()), np.abs(p - PRICES).mean()


def no_number(model):
    out = model(X).squeeze(1)
    return (out == out).all()


def two_draws(model):
    gaps = 0.0
    for x, _ in batches():
        one = model(x) + torch.randn(len(x), 1)
        two = model(x) + torch.randn(len(x), 1)
        gaps += (one - two).abs().mean().item()
    return gaps


@pytest.mark.parametrize(
    "evaluate",
    few(3, [
        sums_by_samples, sum_reduction, means_by_batches, over_a_list_of_batches, counted_again, one_sample_at_a_time,
        one_page_at_a_time, one_page_of_a_loader, sizes_of_lists, leaves_under_a_condition, only_batch,
        only_pair, bias, in_prices, no_number, two_draws,
    ]),
    ids=lambda value: value.__name__,
)  # fmt: skip
def test_sound_figures_have_no_mistake(evaluate):
    assert compared(evaluate) == set()


def test_an_untrained_model_is_not_on_another_scale():
    model = nn.Linear(5, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
    targets = Y * 50 + 300
    with capture_events() as events:
        for _ in range(3):
            optimizer.zero_grad()
            F.mse_loss(model(X).squeeze(1), targets).backward()
            optimizer.step()
            with torch.no_grad():
                (model(X).squeeze(1) - targets).abs().mean()
    assert {event.how for event in events if isinstance(event, ResultCompared)} == {""}


SOURCE = """
def evaluate(loader):
    for x in loader:
        total += f(x)
        return total
    if done:
        mean = total / n
    n = 3
    return 100 * total.item() / n, total / m
"""


def test_divisions_behind_a_loop_end_with_new_values():
    tree = ast.parse(SOURCE)
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    loop = next(node for node in ast.walk(tree) if isinstance(node, ast.For))
    assert [(name, ast.unparse(by)) for name, by, _ in divisions(loop, parents)] == [("total", "n"), ("total", "m")]
    left = leaves_first(loop)
    assert left is not None
    assert left.lineno == 5
