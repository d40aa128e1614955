"""Checks of the toolkit: its steps wait for nothing, and are those of the loop by hand, also when resumed."""

from __future__ import annotations

import importlib.util
import itertools
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import TensorDataset

from accelerator import programs
from accelerator.place import Place, Skipped
from truestep import Run
from truestep.errors import UnknownDevice
from truestep.experiments.instruments.timing.waiting import waiting
from truestep.experiments.running.inside.steps import device_of
from truestep.loop.checkpoint import content
from truestep.loop.checkpoint.checkpoints import Checkpoints
from truestep.loop.checkpoint.safe_state import plain, restored
from truestep.loop.loading.loader import Loader
from truestep.loop.log.mean import Mean
from truestep.loop.process.device import pick
from truestep.loop.rng.seed import borrowed, rng_state, seed_everything, set_rng_state

STEPS = 12


def _data() -> TensorDataset:
    draw = torch.Generator().manual_seed(2)
    shape = (8 * STEPS, 1, 8, 8)
    return TensorDataset(torch.rand(shape, generator=draw), torch.randint(0, 10, shape[:1], generator=draw))


def _train(place: Place, mark: Callable[[], None], *, weighted: bool = False, **options: Any) -> list[torch.Tensor]:
    """Train an epoch with the toolkit; return the weights."""
    options = {"max_epochs": 1, "precision": "fp32", "seed": 3, "watch": False, "progress": False} | options
    with Run(device=place.kind, **options) as run:
        model = run.model(programs.net(place))
        optimizer = run.optimizer(torch.optim.SGD(model.parameters(), 0.05, momentum=0.9))
        run.scheduler(torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step)), every="step")
        ema = run.ema(model, decay=0.9)
        loader = run.loader(_data(), batch_size=8, shuffle=True)
        for x, y in run.train(loader, model):
            with run.autocast():
                loss = F.cross_entropy(model(x).float(), y, reduction="sum" if weighted else "mean")
            run.step(loss, weight=(y >= 0).sum() if weighted else None)
            run.log({"loss": loss})
            mark()
        return [*model.parameters(), *ema.model.parameters()]


def _check_waits(name: str, **options: Any) -> Callable[[Place], None]:
    def check(place: Place) -> None:
        counts: list[int] = []
        with place.waits() as waited:
            _train(place, lambda: counts.append(waited()), **options)
        each = [two - one for one, two in itertools.pairwise(counts)]
        of_the_scaler = 1 if options.get("precision") == "fp16" else 0  # GradScaler.step() reads whether to skip
        assert max(each) <= of_the_scaler, each

    check.__name__ = f"no_step_waits_{name}"
    return check


def an_evaluation_waits_for_nothing(place: Place) -> None:
    with place.waits() as waited, Run(device=place.kind, watch=False, progress=False) as run:
        model = run.model(programs.net(place))
        loader, mean, counts = run.loader(_data(), batch_size=8), run.mean("loss"), []
        with run.evaluate(model):
            for x, y in run.batches(loader):
                right = (model(x).argmax(1) == y).sum()
                mean.update(F.cross_entropy(model(x), y), len(x))
                mean.update(1.5, right)
                counts.append(waited())
        assert len(set(counts[1:])) == 1, counts
        assert run.predict(model, loader).device.type == "cpu"
        assert torch.isfinite(mean.compute().cpu())


def the_mean_of_numbers_is_exact(place: Place) -> None:
    mean = Mean(place.device)
    mean.update(0.1, torch.tensor(3.0, device=place.device))
    assert abs(float(mean) - 0.1) < 1e-15  # in fp32 it is 0.1 + 1.5e-9


def a_run_is_the_loop_by_hand(place: Place) -> None:
    ours = _train(place, lambda: None, accumulate=2, clip_norm=1.0)
    with Run(device=place.kind, max_epochs=1, seed=3, watch=False, progress=False) as run:
        batches = list(run.batches(run.loader(_data(), batch_size=8, shuffle=True)))
    model = programs.net(place)
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))
    for number, (x, y) in enumerate(batches, 1):
        (F.cross_entropy(model(x), y) / 2).backward()
        if number % 2 == 0:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
    assert all(torch.equal(one, two) for one, two in zip(ours, model.parameters(), strict=False))


class _Stopped(Exception):
    pass


def a_resumed_run_is_the_one_that_was_not_stopped(place: Place) -> None:
    """With dropout, which draws from the device's own generator."""
    if importlib.util.find_spec("safetensors") is None:
        raise Skipped("safetensors is not installed, which reads checkpoints")
    with tempfile.TemporaryDirectory() as folder:
        whole = _train(place, lambda: None, max_epochs=2)
        count = iter(range(100))

        def stop() -> None:
            if next(count) == 17:
                raise _Stopped

        try:
            _train(place, stop, max_epochs=2, out=folder, save_every_n_steps=5)
        except _Stopped:
            pass
        torch.rand(5, device=place.device)
        resumed = _train(place, lambda: None, max_epochs=2, out=folder, resume="auto")
    assert all(torch.equal(one, two) for one, two in zip(whole, resumed, strict=True))


def a_device_is_called_by_its_own_name(place: Place) -> None:
    assert pick("auto").type == place.kind if place.kind != "cpu" else pick("cpu").type == "cpu"
    if place.kind == "cpu":
        return
    for wrong, right in ((f"{place.kind}:99", f'use "{place.kind}"'), ("gpu", f'use "{place.kind}" on this machine')):
        told = ""
        try:
            pick(wrong)
        except UnknownDevice as error:
            told = str(error)
        assert f'"{wrong}"' in told
        assert right in told


def the_generator_of_a_device_is_seeded_kept_and_lent(place: Place) -> None:
    seed_everything(5)
    state = rng_state()
    expected = torch.rand(4, device=place.device).tolist()
    set_rng_state(state)
    with borrowed(place.device) as reseed:
        reseed(1)
        first = torch.rand(4, device=place.device).tolist()
        reseed(1)
        assert torch.rand(4, device=place.device).tolist() == first
    assert torch.rand(4, device=place.device).tolist() == expected


def a_transform_that_draws_on_the_device_is_seeded_by_batch(place: Place) -> None:
    draw = lambda x: torch.rand(len(x), device=place.device)  # noqa: E731
    loader = Loader(list(range(23)), batch_size=4, device=place.device, transform=draw)
    torch.rand(1, device=place.device)
    state = rng_state()
    whole = [batch.tolist() for batch in loader.epoch(1)]
    expected = torch.rand(3, device=place.device).tolist()
    set_rng_state(state)
    assert torch.rand(3, device=place.device).tolist() == expected
    assert [batch.tolist() for batch in loader.epoch(1, start=2)] == whole[2:]


def batches_come_from_the_gpu_and_the_data_sets_tensors_stay(place: Place) -> None:
    place.needs("cuda", what="data set that moves to the device")
    x, y = torch.randn(23, 5), torch.arange(23)
    dataset = TensorDataset(x, y)
    noise = lambda x, y: (x + torch.rand_like(x), y)  # noqa: E731
    loader = Loader(dataset, batch_size=4, shuffle=True, device=place.device, transform=noise)
    whole = [[field.cpu() for field in batch] for batch in loader.epoch(1)]
    assert next(loader.epoch(0))[0].is_cuda
    assert dataset.tensors[0].is_cpu
    rest = [[field.cpu() for field in batch] for batch in loader.epoch(1, start=3)]
    for ours, theirs in zip(rest, whole[3:], strict=True):
        assert all(torch.equal(one, two) for one, two in zip(ours, theirs, strict=True))
    by_hand = [y.tolist() for _, y in Loader(dataset, batch_size=4, shuffle=True).epoch(1)]
    assert [y.tolist() for _, y in whole] == by_hand


def batches_for_a_gpu_are_pinned(place: Place) -> None:
    place.needs("cuda", what="pinned memory")
    loader = Loader([float(number) for number in range(23)], batch_size=4, num_workers=1, device=place.device)
    assert all(batch.is_pinned() for batch in loader)
    loader.close()


def skipped_steps_are_counted(place: Place) -> None:
    for fused in (False, True) if place.kind == "cuda" else (False,):
        with Run(device=place.kind, precision="fp16", max_epochs=1, watch=False, progress=False) as run:
            model = run.model(nn.Linear(6, 4))
            run.optimizer(torch.optim.AdamW(model.parameters(), lr=1e-2, fused=fused))
            for index in run.steps(3):
                with run.autocast():
                    loss = model(torch.ones(2, 6, device=place.device)).float().mean() * (1e36 if index == 1 else 1.0)
                run.step(loss)
            assert run.skipped_steps == 1
            assert run.global_step == 3


def a_tensor_comes_back_to_its_device(place: Place) -> None:
    back = restored(plain([torch.ones(2, device=place.device)], torch.Tensor.cpu))
    assert back[0].device.type == place.kind
    assert back[0].tolist() == [1, 1]


def tensors_on_a_device_are_copied_before_training_goes_on(place: Place) -> None:
    if importlib.util.find_spec("safetensors") is None:
        raise Skipped("safetensors is not installed, which reads checkpoints")
    gate, write = threading.Event(), content.write_tensors

    def waiting(*given: Any) -> None:
        assert gate.wait(30)
        write(*given)

    content.write_tensors = waiting
    try:
        with tempfile.TemporaryDirectory() as folder:
            checkpoints = Checkpoints(Path(folder), asynchronous=True)
            weight, moment = torch.zeros(10**5, device=place.device), torch.zeros(10**5, device=place.device)
            checkpoints.save(1, epoch=0, models={"model": {"weight": weight}}, state={"moment": moment})
            weight += 1
            moment += 1
            place.settle()
            gate.set()
            found = checkpoints.newest()
            assert not found.model("model", place.device)["weight"].any()
            assert found.state()["moment"].device.type == place.kind
            assert not found.state()["moment"].any()
    finally:
        gate.set()
        content.write_tensors = write


def the_clock_of_an_experiment_waits_for_the_device(place: Place) -> None:
    wait = waiting(device_of(torch.optim.SGD(programs.net(place).parameters(), 0.1)))
    assert (wait is None) == (place.kind == "cpu")
    if wait is not None:
        assert wait == place.module.synchronize
        wait()


def checks() -> Iterator[Callable[[Place], None]]:
    """Give every check of this module."""
    yield _check_waits("in_fp32", clip_norm=1.0)
    yield _check_waits("when_gradients_accumulate", accumulate=3)
    yield _check_waits("when_losses_have_weights", accumulate=2, weighted=True)
    yield _check_waits("in_fp16", precision="fp16")
    yield an_evaluation_waits_for_nothing
    yield the_mean_of_numbers_is_exact
    yield a_run_is_the_loop_by_hand
    yield a_resumed_run_is_the_one_that_was_not_stopped
    yield a_device_is_called_by_its_own_name
    yield the_generator_of_a_device_is_seeded_kept_and_lent
    yield a_transform_that_draws_on_the_device_is_seeded_by_batch
    yield batches_come_from_the_gpu_and_the_data_sets_tensors_stay
    yield batches_for_a_gpu_are_pinned
    yield skipped_steps_are_counted
    yield a_tensor_comes_back_to_its_device
    yield tensors_on_a_device_are_copied_before_training_goes_on
    yield the_clock_of_an_experiment_waits_for_the_device
