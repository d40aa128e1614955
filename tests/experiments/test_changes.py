"""Changes of experiments: they apply where they should, and are undone exactly."""

import os
import random
import time
import warnings
from collections.abc import Mapping
from contextlib import ExitStack

import numpy as np
import pytest
import torch
from torch import nn
from torch.jit import _builtins
from torch.optim import lr_scheduler, optimizer
from torch.utils.data import DataLoader, IterableDataset, TensorDataset
from torch.utils.data._utils.fetch import _MapDatasetFetcher
from torch.utils.data.dataloader import _BaseDataLoaderIter, _MultiProcessingDataLoaderIter

from truestep import Run
from truestep.experiments.changes import CHANGES, Aimed
from truestep.experiments.changes.harness.first_batches import FirstBatches
from truestep.experiments.changes.harness.no_dropout import NoDropout
from truestep.loop.loading.loader import Loader


def numbers(size=10):
    return TensorDataset(torch.arange(float(size)))


@pytest.fixture
def change(request):
    made = request.param()
    with ExitStack() as stack:
        made.install(stack)
        yield made


def seen(loader):
    return [x.tolist() for (x,) in loader]


SEAMS = [(_BaseDataLoaderIter, "__next__"), (Loader, "epoch"), (nn.functional, "scaled_dot_product_attention")]
SEAMS += [(torch, "manual_seed"), (random, "seed"), (np.random, "seed"), (torch.autograd, "_engine_run_backward")]
LOSSES = ("cross_entropy", "binary_cross_entropy_with_logits", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
SEAMS += [(nn.functional, name) for name in (*LOSSES, "nll_loss", "kl_div")]
SEAMS += [(owner, f"clip_grad_{kind}_") for owner in (nn.utils, nn.utils.clip_grad) for kind in ("norm", "value")]
ACTIVATIONS = ("relu", "sigmoid", "tanh", "log_softmax")
SEAMS += [(owner, name) for owner in (nn.functional, torch, torch.Tensor) for name in ACTIVATIONS]
SEAMS += [(nn.functional, "softplus"), (nn.Module, "zero_grad"), (nn.Module, "__init__"), (nn.Linear, "forward")]
SEAMS += [(torch.optim.Optimizer, name) for name in ("__init__", "zero_grad")]
SEAMS += [(torch.amp.GradScaler, name) for name in ("scale", "step", "_unscale_grads_")]
SEAMS += [(DataLoader, name) for name in ("__iter__", "_get_iterator")]
SEAMS += [(torch._VF, name) for name in ("dropout", "dropout_", "feature_dropout", "feature_dropout_", "alpha_dropout")]
SEAMS += [(torch, "set_anomaly_enabled"), (nn.Module, "state_dict"), (nn.Linear, "forward")]
SEAMS += [(nn.Module, name) for name in vars(nn.Module) if name.startswith("register_") and name.endswith("_hook")]
SEAMS += [
    (kind, name)
    for kind in vars(lr_scheduler).values()
    if isinstance(kind, type) and issubclass(kind, lr_scheduler.LRScheduler)
    for name in ("__init__", "step")
]
SEAMS += [(nn.Module, name) for name in ("_wrapped_call_impl", "__call__", "zero_grad")]
SEAMS += [(torch.optim.Optimizer, "zero_grad"), (DataLoader, "__init__"), (_MultiProcessingDataLoaderIter, "_reset")]
SEAMS += [(_MapDatasetFetcher, "fetch"), (torch.Tensor, "to"), (torch.Tensor, "cuda"), (torch, "set_num_threads")]
SEAMS += [(torch.optim.Adam, "__init__"), (torch.optim.SGD, "__init__"), (torch.optim.RMSprop, "__init__")]
SEAMS += [(os, "urandom"), (random, "_urandom"), (torch, "seed"), (time, "time"), (time, "time_ns")]
SEAMS += [(torch, "set_float32_matmul_precision"), (torch.backends.cudnn, "benchmark")]


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_undone_also_after_an_exception(name):
    hooks = [optimizer._global_optimizer_pre_hooks, optimizer._global_optimizer_post_hooks]
    hooks += [
        kind for name, kind in vars(nn.modules.module).items() if name.startswith("_global_") and kind is not None
    ]
    hooks += [vars(nn.Module), vars(nn.Parameter), _builtins._get_builtin_table(), warnings.filters]
    before, hooked = [getattr(owner, attribute) for owner, attribute in SEAMS], [_of(kind) for kind in hooks]
    linear = nn.Linear(1, 1)
    with pytest.raises(KeyError), ExitStack() as stack:
        made = CHANGES[name](idle=True) if issubclass(CHANGES[name], Aimed) else CHANGES[name]()
        made.install(stack)
        linear.register_forward_hook(lambda *_: None)
        raise KeyError
    assert [getattr(owner, attribute) for owner, attribute in SEAMS] == before
    assert [_of(kind) for kind in hooks] == hooked


def _of(kind):
    return dict(kind) if isinstance(kind, Mapping) else list(kind) if isinstance(kind, list) else kind


@pytest.mark.parametrize("change", [FirstBatches], indirect=True)
def test_the_first_batch_comes_again_in_every_epoch(change):
    loader = DataLoader(numbers(), batch_size=4, shuffle=True)
    first, *others = seen(loader)
    assert len(others) == 2
    assert all(batch == first for batch in others + seen(loader))
    assert (change.applied, change.samples) == (5, 4)


@pytest.mark.parametrize("change", [lambda: FirstBatches(2)], indirect=True)
def test_several_first_batches_come_in_turn(change):
    assert seen(DataLoader(numbers(), batch_size=2)) == [[0, 1], [2, 3], [0, 1], [2, 3], [0, 1]]


@pytest.mark.parametrize("change", [FirstBatches], indirect=True)
def test_an_evaluation_sees_all_of_its_data(change):
    loader = DataLoader(numbers(4), batch_size=2)
    seen(loader)
    with torch.no_grad():
        assert seen(loader) == [[0, 1], [2, 3]]


@pytest.mark.parametrize("change", [FirstBatches], indirect=True)
def test_what_is_done_to_a_batch_in_place_does_not_come_back(change):
    for (x,) in DataLoader(numbers(), batch_size=2):
        assert x.tolist() == [0, 1]
        x.add_(5)


@pytest.mark.parametrize("change", [FirstBatches], indirect=True)
def test_loaders_made_again_are_the_same_by_their_data_set(change):
    data = numbers()
    assert seen(DataLoader(data, batch_size=5))[0] == seen(DataLoader(data, batch_size=5, shuffle=True))[0]


@pytest.mark.parametrize("change", [FirstBatches], indirect=True)
def test_a_list_is_one_data_set_in_every_epoch(change):
    data = [torch.tensor([float(number)]) for number in range(6)]
    loader = DataLoader(data, batch_size=2, shuffle=True)
    batches = [x.tolist() for _ in range(12) for x in loader]
    assert all(batch == batches[0] for batch in batches)
    assert change.samples == 2
    for _ in range(20):
        assert len(next(iter(DataLoader([1.0, 2.0], batch_size=2)))) == 2
    assert len(change._streams) == 2


class Stream(IterableDataset):
    def __iter__(self):
        yield from (torch.tensor(float(number)) for number in range(6))


@pytest.mark.parametrize("change", [FirstBatches], indirect=True)
@pytest.mark.parametrize("workers", [0, 1])
def test_streams_and_workers_are_loaders_like_others(change, workers):
    batches = [x.tolist() for x in DataLoader(Stream(), batch_size=2, num_workers=workers)]
    assert batches == [[0, 1]] * 3


@pytest.mark.parametrize("change", [FirstBatches], indirect=True)
@pytest.mark.parametrize("data", [numbers(6), [float(number) for number in range(6)]], ids=["memory", "samples"])
def test_loaders_of_the_toolkit_give_it_too(change, data):
    run = Run(max_epochs=2, device="cpu")
    model = run.model(nn.Linear(1, 1))
    run.optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
    loader = run.loader(data, batch_size=2, shuffle=True)
    given = []
    for _ in run.epochs():
        for batch in run.train(loader):
            x = batch[0] if isinstance(batch, list | tuple) else batch
            given.append(x.tolist())
            run.step(model(x[:, None].float()).mean())
        with run.evaluate(model):
            assert len({str(batch) for batch in run.batches(loader)}) == 3
    assert len(given) == 6
    assert all(batch == given[0] for batch in given)


@pytest.mark.parametrize("change", [NoDropout], indirect=True)
def test_dropout_gives_its_input_back(change):
    x = torch.ones(4, 8)
    for layer in (nn.Dropout(0.5), nn.Dropout(0.5, inplace=True), nn.Dropout1d(0.5), nn.AlphaDropout(0.5)):
        assert layer(x).equal(torch.ones(4, 8))
    assert nn.functional.dropout(x, 0.9).equal(x)
    attention = nn.MultiheadAttention(8, 2, dropout=0.9, batch_first=True)
    query = torch.randn(2, 3, 8)
    assert attention(query, query, query)[0].equal(attention(query, query, query)[0])
    assert change.applied >= 7
    fused, applied = nn.functional.scaled_dot_product_attention, change.applied
    assert fused(query, query, query, None, 0.9).equal(fused(query, query, query))
    assert fused(query, query, query, dropout_p=0.9).equal(fused(query, query, query))
    assert change.applied == applied + 2


@pytest.mark.parametrize("change", [FirstBatches], indirect=True)
def test_loaders_and_data_sets_that_are_made_in_every_epoch_are_one_stream(change):
    given = []
    for epoch in range(4):
        for (x,) in DataLoader(TensorDataset(torch.arange(10.0) + 10 * epoch), 2):
            given.append(x.tolist())
    assert given == [[0.0, 1.0]] * 20
    assert (change.samples, change.fresh, change.applied) == (2, 0, 19)


@pytest.mark.parametrize("change", [FirstBatches], indirect=True)
def test_two_loaders_under_way_at_one_line_are_two_streams(change):
    pairs = []
    for _ in range(3):
        one, other = (TensorDataset(torch.arange(4.0) + start) for start in (0, 100))
        for (x,), (y,) in zip(DataLoader(one, 2), DataLoader(other, 2), strict=True):
            pairs.append((x.tolist(), y.tolist()))
    assert pairs == [([0.0, 1.0], [100.0, 101.0])] * 6
    assert change.fresh == 1


def by_hand(model, loss, batch=4, steps=6):
    """Train on batches that are cut by hand, and return the inputs of the model."""
    torch.manual_seed(0)
    x, y = torch.randn(32, 8), torch.randint(0, 3, (32,))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    seen = []
    model.register_forward_pre_hook(lambda _, args: seen.append(args[0].clone()))
    for step in range(steps):
        cut = torch.arange(step * batch, (step + 1) * batch) % 32
        optimizer.zero_grad()
        loss(model(x[cut]), y[cut]).backward()
        optimizer.step()
    return seen


@pytest.mark.parametrize("kind", ["function", "module"])
@pytest.mark.parametrize("change", [FirstBatches], indirect=True)
def test_what_a_model_was_called_with_is_repeated_where_no_loader_gives_batches(change, kind):
    targets = []
    loss = nn.CrossEntropyLoss() if kind == "module" else lambda *args: nn.functional.cross_entropy(*args)

    class Told(nn.CrossEntropyLoss):
        def forward(self, input, target):
            targets.append(target.tolist())
            return super().forward(input, target)

    seen = by_hand(nn.Sequential(nn.Linear(8, 3)), Told() if kind == "module" else loss)
    assert all(torch.equal(x, seen[0]) for x in seen)
    assert all(target == targets[0] for target in targets)
    counts = change.counts()
    assert (counts["applied"], counts["fresh"], counts["loose"], counts["samples"], counts["by_hand"]) == (
        5,
        0,
        0,
        4,
        1,
    )


@pytest.mark.parametrize("change", [FirstBatches], indirect=True)
def test_targets_of_a_loss_that_the_script_writes_are_loose(change):
    by_hand(nn.Linear(8, 1), lambda out, y: ((out.squeeze(1) - y) ** 2).mean())
    assert change.counts()["loose"] == 5


@pytest.mark.parametrize("change", [FirstBatches], indirect=True)
def test_a_script_that_repeats_its_batch_is_left_alone(change):
    torch.manual_seed(0)
    model, x, y = nn.Linear(8, 1), torch.randn(4, 8), torch.randn(4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(5):
        optimizer.zero_grad()
        ((model(x).squeeze(1) - y) ** 2).mean().backward()
        optimizer.step()
    counts = change.counts()
    assert (counts["same"], counts["applied"], counts["loose"], counts["fresh"]) == (4, 0, 0, 0)


def test_steps_that_a_script_takes_by_itself_are_its_backward_passes(monkeypatch):
    monkeypatch.setattr("truestep.experiments.running.inside.steps.is_any_alive", lambda: False)
    torch.manual_seed(0)
    model = nn.Linear(8, 3)
    seen = []
    model.register_forward_pre_hook(lambda _, args: seen.append(args[0].clone()))
    with ExitStack() as stack:
        FirstBatches().install(stack)
        for _ in range(4):
            model.zero_grad()
            nn.functional.cross_entropy(model(torch.randn(4, 8)), torch.randint(0, 3, (4,))).backward()
            for p in model.parameters():
                p.data.add_(p.grad, alpha=-0.1)
    assert all(torch.equal(x, seen[0]) for x in seen)
