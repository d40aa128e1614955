"""Remedies in programs that are not their proofs: the loss goes the way of the right program, to the last bit."""

import pickle
from contextlib import ExitStack

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from truestep.experiments.changes import CHANGES


def run(program, *arguments, change=None):
    """Return the losses of a program, and how often the change applied."""
    torch.manual_seed(0)
    with ExitStack() as stack:
        made = CHANGES[change]() if change else None
        if made:
            made.install(stack)
        return [float(loss.detach()) for loss in program(*arguments)], made.applied if made else 0


def mends(change, program, bad, good):
    """Whether a change makes the bad variant of a program exactly the good one, which it leaves alone."""
    right, _ = run(program, good)
    assert run(program, good, change=change) == (right, 0)
    assert run(program, bad)[0] != right
    mended, applied = run(program, bad, change=change)
    return mended == right and applied > 0


def labelled(n=8):
    x = torch.randn(n, 4)
    return x, (x.sum(1) > 0).long()


class Body(nn.Module):
    """Two layers and a head, with the layers where the variant says."""

    def __init__(self, kind):
        super().__init__()
        layers = [nn.Linear(4, 4), nn.Linear(4, 4)]
        self.first = nn.Linear(4, 4)
        self.held = {"dict": {"a": layers[0], "b": layers[1]}, "tuple": tuple(layers)}.get(kind) or nn.ModuleList(
            layers
        )
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        layers = self.held.values() if isinstance(self.held, dict) else self.held
        x = self.first(x).relu()
        for layer in layers:
            x = layer(x).relu()
        return self.head(x)


def trained(model, optimizer, scheduler=None, clear=None):
    for _ in range(6):
        x, y = labelled()
        loss = F.cross_entropy(model(x), y)
        (clear or optimizer).zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        yield loss


def in_containers(kind):
    model = Body(kind)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    yield from trained(model, optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 2), clear=model)


@pytest.mark.parametrize("kind", ["dict", "tuple"])
def test_layers_in_containers_are_held_under_a_schedule_and_registered(kind):
    assert mends("hold-all", in_containers, kind, "list of modules")


def without_the_head(all_of_it):
    model = Body("")
    rates = [{"params": [*model.first.parameters()], "lr": 0.01}, {"params": [*model.held.parameters()], "lr": 0.1}]
    if all_of_it:
        rates[1]["params"] += model.head.parameters()
    yield from trained(model, torch.optim.SGD(rates, momentum=0.9))


def test_a_forgotten_head_joins_the_group_that_is_nearest():
    assert mends("hold-all", without_the_head, False, True)


def built_again(late):
    model = Body("")
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    again = Body("")
    yield from trained(again, torch.optim.Adam(again.parameters(), lr=0.01) if not late else optimizer, clear=again)


def test_a_model_that_was_built_again_is_held_as_a_whole():
    assert mends("hold-all", built_again, True, False)


def cleared_early(early, keep_zeros=True):
    model = Body("")
    ours, head = (torch.optim.Adam(part, lr=0.01) for part in (model.held.parameters(), model.head.parameters()))
    for _ in range(6):
        x, y = labelled()
        loss = F.cross_entropy(model(x), y)
        if not early:
            model.zero_grad(set_to_none=not keep_zeros)
        loss.backward()
        if early:
            model.zero_grad(set_to_none=not keep_zeros)
        ours.step()
        head.step()
        yield loss


def test_gradients_cleared_early_are_given_back_to_each_optimizer():
    assert mends("keep-gradients", cleared_early, True, False)


def of_one_batch(rest):
    data = TensorDataset(*labelled(40))
    model = Body("")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        for number, (x, y) in enumerate(DataLoader(data, batch_size=8), 1):
            loss = F.cross_entropy(model(x), y) / 3
            loss.backward()
            yield loss
            if number % 3 == 0 or (rest and number == 5):
                optimizer.step()
                optimizer.zero_grad()


def test_the_rest_of_an_epoch_is_stepped_on():
    assert mends("step-rest", of_one_batch, False, True)


def spikes_left_out(_):
    model = Body("")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for number, (x, y) in enumerate(DataLoader(TensorDataset(*labelled(72)), batch_size=4), 1):
        loss = F.cross_entropy(model(x), y) / 3
        loss.backward()
        yield loss
        if number % 3 == 0:
            optimizer.step()
        if number % 3 == 0 or number in (7, 13):
            optimizer.zero_grad()


def test_a_batch_that_is_thrown_away_within_an_epoch_stays_so():
    assert run(spikes_left_out, 0, change="step-rest") == (run(spikes_left_out, 0)[0], 0)


def clamped(activation):
    relu = nn.ReLU()
    model = nn.Sequential(nn.Linear(4, 8), relu, nn.Linear(8, 2), *([relu] if activation else []))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        x, y = labelled()
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        yield loss


def test_an_activation_that_also_serves_in_the_middle_goes_before_the_loss_only():
    assert mends("drop-activation", clamped, True, False)


def out_of_reach(activation):
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1), *([nn.ReLU(inplace=True)] if activation else []))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        x, _ = labelled()
        optimizer.zero_grad()
        loss = F.mse_loss(model(x).squeeze(1), x.sum(1))
        loss.backward()
        optimizer.step()
        yield loss
        with torch.no_grad():
            yield model(x).min()


def test_an_activation_before_a_regression_goes_in_evaluation_too():
    assert mends("drop-activation", out_of_reach, True, False)


def scored(softmax):
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        x, y = labelled()
        optimizer.zero_grad()
        loss = F.nll_loss(softmax(model(x)), y)
        loss.backward()
        optimizer.step()
        yield loss


@pytest.mark.parametrize(
    "wrong", [lambda scores: F.log_softmax(scores, 0), lambda scores: F.log_softmax(scores, dim=0)]
)
def test_a_softmax_over_the_samples_goes_over_the_classes_however_its_dimension_is_given(wrong):
    assert mends("softmax-over-classes", scored, wrong, lambda scores: F.log_softmax(scores, 1))


@pytest.mark.parametrize("change", ["drop-activation", "softmax-over-classes", "ignore-padding", "log-probabilities"])
def test_a_model_that_holds_functions_is_pickled(change):
    with ExitStack() as stack:
        CHANGES[change]().install(stack)
        held = [F.relu, torch.tanh, F.log_softmax, F.cross_entropy, F.nll_loss]
        written = pickle.dumps(held)
    assert pickle.loads(written) == [F.relu, torch.tanh, F.log_softmax, F.cross_entropy, F.nll_loss]


class Constant(IterableDataset):
    def __iter__(self):
        return iter(torch.zeros(6, 1))


def test_a_stream_of_equal_batches_comes_to_its_end():
    with ExitStack() as stack:
        change = CHANGES["once-per-stream"]()
        change.install(stack)
        assert len(list(DataLoader(Constant(), batch_size=2, num_workers=2))) == 3
    assert change.applied == 3


class Growing(Dataset):
    def __init__(self):
        self.transform = nn.Identity()
        self.transform.strength = 1.0

    def __len__(self):
        return 2

    def __getitem__(self, index):
        return self.transform.strength


@pytest.mark.parametrize("workers", [1, 2])
def test_workers_are_kept_until_the_data_set_changes_and_passes_stay_apart(workers):
    loader = DataLoader(Growing(), num_workers=workers)
    with ExitStack() as stack:
        change = CHANGES["keep-workers"]()
        change.install(stack)
        assert [x.item() for x in loader] == [x.item() for x in loader] == [1.0, 1.0]
        assert change.applied == 1
        loader.dataset.transform.strength = 2.0
        assert [x.item() for x in loader] == [2.0, 2.0]
        assert len([(a, b) for a in loader for b in loader]) == 4
    assert not loader.persistent_workers


class Makes(nn.Module):
    """Two layers: made in the first forward and registered, or made in every forward."""

    def __init__(self, lazy):
        super().__init__()
        self.head, self.lazy, self.layers = nn.Linear(4, 2), lazy, None

    def forward(self, x):
        layers = self.layers or nn.ModuleList(nn.Linear(4, 4) for _ in range(2))
        if self.lazy:
            self.layers = layers
        for layer in layers:
            x = layer(x).relu()
        return self.head(x)


@pytest.mark.parametrize(("lazy", "applied", "held"), [(False, 4, 6), (True, 0, 2)])
def test_layers_made_in_a_forward_are_made_once_and_held(lazy, applied, held):
    with ExitStack() as stack:
        change = CHANGES["keep-layers"]()
        change.install(stack)
        model, x = Makes(lazy), torch.randn(8, 4)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
        first, *others = [model(x) for _ in range(3)]
        assert all(output.equal(first) for output in others)
        assert change.applied == applied
        assert len(optimizer.param_groups[0]["params"]) == held
        others[-1].sum().backward()
        optimizer.step()
        assert not model(x).equal(first)
