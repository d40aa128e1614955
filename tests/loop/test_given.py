"""DataLoaders of the user's: batches as they come, never batches of batches; resumed in the same order."""

import random
import warnings
import weakref

import pytest
import torch
from tiers import few
from torch import nn
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    IterableDataset,
    RandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

from truestep.errors import BadCheckpoint, BadLoader, InexactResume, SamplesReadAgain
from truestep.loop.run.run import Run

DATA = TensorDataset(torch.arange(20.0).reshape(20, 1), torch.arange(20.0).reshape(20, 1))


class Bucketed:
    """A batch sampler of uneven batches, with a private generator."""

    def __init__(self):
        self.chance = random.Random(3)

    def __iter__(self):
        order = [[0, 1, 2], [3, 4], [5, 6, 7, 8, 9], [10], list(range(11, 20))]
        self.chance.shuffle(order)
        yield from order

    def __len__(self):
        return 5


class Lines(IterableDataset):
    def __iter__(self):
        return iter(DATA)


class Noisy(torch.utils.data.Dataset):
    def __len__(self):
        return 20

    def __getitem__(self, index):
        x = DATA[index][0]
        return x + torch.rand(()), x


MADE = {
    "shuffled": lambda: DataLoader(DATA, batch_size=3, shuffle=True),
    "generator": lambda: DataLoader(DATA, batch_size=3, shuffle=True, generator=torch.Generator().manual_seed(7)),
    "weighted": lambda: DataLoader(DATA, batch_size=3, sampler=WeightedRandomSampler(torch.rand(20), 20)),
    "batch sampler": lambda: DataLoader(DATA, batch_sampler=BatchSampler(RandomSampler(DATA), 3, drop_last=False)),
    "bucketed": lambda: DataLoader(DATA, batch_sampler=Bucketed()),
    "iterable": lambda: DataLoader(Lines(), batch_size=3),
    "noisy": lambda: DataLoader(Noisy(), batch_size=3, shuffle=True),
    "workers": lambda: DataLoader(Noisy(), batch_size=3, shuffle=True, num_workers=2),
}


def loss_of(model, batch):
    return nn.functional.mse_loss(nn.functional.dropout(model(batch[0]), 0.3), batch[1])


def train(out, kind, *, via="train", stop_at=None):
    """Train for three epochs by a DataLoader; return the contents of each batch, and the weights."""
    run = Run(out=out, device="cpu", watch=False, seed=1, max_epochs=3, resume="auto" if out else None)
    given = MADE[kind]()
    loader = run.loader(given) if via == "loader" else given
    model = run.model(nn.Linear(1, 1))
    run.optimizer(torch.optim.SGD(model.parameters(), lr=1e-4))
    seen = []
    for _ in run.epochs():
        for batch in run.train(loader, model):
            run.step(loss_of(model, batch))
            seen.append(batch[0].flatten().tolist())
            if out and run.global_step == 9:
                run.save()
            if run.global_step == stop_at:
                run.close()
                return seen, None
    run.close()
    return seen, [p.detach().clone() for p in model.parameters()]


BRIEFLY = [pytest.param(kind, marks=[pytest.mark.program] * (kind == "workers")) for kind in MADE]
"""Those with workers are for `make programs`."""


@pytest.mark.parametrize("via", ["train", "loader"])
@pytest.mark.parametrize("kind", BRIEFLY)
def test_batches_are_those_of_the_dataloader(kind, via):
    seen, weights = train(None, kind, via=via)
    torch.manual_seed(1)
    random.seed(1)
    given, model = MADE[kind](), nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    expected = []
    for _ in range(3):
        for batch in given:
            optimizer.zero_grad()
            loss_of(model, batch).backward()
            optimizer.step()
            expected.append(batch[0].flatten().tolist())
    assert seen == expected
    assert all(map(torch.equal, weights, model.parameters()))


@pytest.mark.parametrize("kind", BRIEFLY)
def test_a_resumed_pass_goes_on_with_the_same_batches(kind, tmp_path):
    straight, weights = train(tmp_path / "straight", kind)
    stopped, _ = train(tmp_path / "run", kind, stop_at=10)
    with pytest.warns(SamplesReadAgain, match="read again and dropped"):
        seen, resumed = train(tmp_path / "run", kind)
    assert stopped[:9] + seen == straight
    assert all(map(torch.equal, weights, resumed))


def test_evaluation_and_prediction_take_a_dataloader():
    run = Run(device="cpu", watch=False)
    model = run.model(nn.Identity())
    assert [len(x) for x, _ in run.batches(DataLoader(DATA, batch_size=8))] == [8, 8, 4]
    assert torch.equal(run.predict(model, DataLoader(DATA, batch_size=8)), DATA.tensors[0])
    assert torch.equal(run.predict(model, DataLoader(Lines(), batch_size=8)), DATA.tensors[0])
    for kind, word in (("shuffled", "another order"), ("bucketed", "another order")):
        with pytest.raises(BadLoader, match=word):
            run.predict(model, MADE[kind]())


def test_a_dataloader_has_its_own_batches():
    run = Run(device="cpu", watch=False)
    with pytest.raises(BadLoader, match="together with batch_size, shuffle"):
        run.loader(DataLoader(DATA, batch_size=8), batch_size=8, shuffle=True)
    with pytest.raises(BadLoader, match="without batch_size"):
        run.loader(DATA)


@pytest.mark.parametrize("wrong", [DATA, [torch.ones(2)], None])
def test_what_is_no_loader_is_refused(wrong):
    run = Run(device="cpu", watch=False, max_epochs=1)
    with pytest.raises(BadLoader, match="the loader of a loop must be"):
        next(run.train(wrong))
    with pytest.raises(BadLoader, match="the loader of a loop must be"):
        next(run.batches(wrong))


def made(out=None, **settings):
    """Return a run that saves after every step, and its model."""
    run = Run(
        out=out,
        device="cpu",
        watch=False,
        seed=1,
        save_every_n_steps=1 if out else None,
        resume="auto" if out else None,
        **settings,
    )
    model = run.model(nn.Linear(1, 1))
    run.optimizer(torch.optim.SGD(model.parameters(), lr=0.0))
    return run, model


def shuffled(count):
    return DataLoader(torch.arange(float(count)).view(-1, 1), batch_size=1, shuffle=True)


def taken_early(out, stop_at):
    """Take a batch of a side DataLoader before the main loop; return the batches of each body."""
    run, model = made(out, max_epochs=2)
    main, extra, seen = run.loader(torch.arange(6.0).view(-1, 1), 1), shuffled(40), []
    for _ in run.epochs():
        side = iter(run.train(extra))
        early = next(side).item()
        for x in run.train(main):
            run.step(model(x).sum())
            seen.append((early, x.item(), next(side).item()))
            if run.global_step == stop_at:
                run.close()
                return seen
        side.close()
    run.close()
    return seen


def evaluated_within(out, stop_at):
    """Evaluate on the DataLoader that is trained on, in the middle of its pass."""
    run, model = made(out, max_epochs=1)
    given, seen = run.loader(shuffled(12)), []
    for _ in run.epochs():
        for x in run.train(given):
            run.step(model(x).sum())
            seen.append(x.item())
            if run.global_step == 3:
                assert len(list(run.batches(given))) == 12
            if run.global_step == stop_at:
                run.close()
                return seen
    run.close()
    return seen


def restarted_when_empty(out, stop_at):
    """Take batches of two short side DataLoaders beside the main loop, and begin each again when it is empty."""
    run, model = made(out, max_epochs=2)
    main, sides, seen = run.loader(torch.arange(12.0).view(-1, 1), 1), [shuffled(5), shuffled(3)], []
    for _ in run.epochs():
        passes = [iter(run.train(side)) for side in sides]
        for x in run.train(main):
            run.step(model(x).sum())
            seen.append(x.item())
            for at, side in enumerate(sides):
                try:
                    seen.append(next(passes[at]).item())
                except StopIteration:
                    passes[at] = iter(run.train(side))
                    seen.append(next(passes[at]).item())
            if run.global_step == stop_at:
                run.close()
                return seen
        for one in passes:
            one.close()
    run.close()
    return seen


def restarted_outside_of_epochs(out, stop_at):
    """Take batches of a side DataLoader in a loop over steps."""
    run, model = made(out, max_steps=14)
    side, seen = shuffled(5), []
    batches = iter(run.train(side))
    for step in run.steps():
        try:
            x = next(batches)
        except StopIteration:
            batches = iter(run.train(side))
            x = next(batches)
        run.step(model(x).sum())
        seen.append((step, x.item()))
        if run.global_step == stop_at:
            run.close()
            return seen
    run.close()
    return seen


def zipped_with_itself(out, stop_at):
    """Make two passes over one DataLoader at a time."""
    run, model = made(out, max_epochs=1)
    given, seen = run.loader(shuffled(12)), []
    for _ in run.epochs():
        for x, y in zip(run.train(given), run.train(given), strict=False):
            run.step(model(x).sum())
            seen.append((x.item(), y.item()))
            if run.global_step == stop_at:
                run.close()
                return seen
    run.close()
    return seen


PASSES = [taken_early, evaluated_within, zipped_with_itself, restarted_when_empty, restarted_outside_of_epochs]


@pytest.mark.parametrize("program", PASSES)
@pytest.mark.parametrize("stop_at", few(3, [5, 8, 11]))
@pytest.mark.filterwarnings("ignore::truestep.errors.SamplesReadAgain")
def test_every_pass_over_a_dataloader_is_resumed_in_its_order(program, stop_at, tmp_path):
    straight = program(None, None)
    stopped = program(tmp_path, stop_at)
    steps = 3 if program is restarted_when_empty else 1
    assert stopped[: steps * (stop_at - 1)] + program(tmp_path, None) == straight


def test_dataloaders_made_in_bodies_outside_of_epochs_are_let_go():
    run, model = made(max_steps=6)
    held = []
    for _ in run.steps():
        given = shuffled(2)
        held.append(weakref.ref(given))
        for x in run.train(given):
            run.step(model(x).sum())
        del given
    assert [one() for one in held] == [None] * len(held)


@pytest.mark.parametrize(("dataset", "warns"), [(Noisy(), True), (DATA, False), (Lines(), False)])
def test_random_samples_of_persistent_workers_are_said_to_be_inexact_at_the_first_save(dataset, warns, tmp_path):
    run, model = made(tmp_path, max_epochs=1)
    given = DataLoader(dataset, batch_size=5, num_workers=1, persistent_workers=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in run.epochs():
            for x, _y in run.train(given):
                run.step(model(x).sum())
    run.close()
    given._iterator._shutdown_workers()  # else they live as long as the DataLoader
    told = [str(one.message) for one in caught if one.category is InexactResume]
    assert len(told) == warns
    assert all("persistent_workers=False" in one for one in told)


OTHERWISE = {
    "batch_size": DataLoader(DATA, batch_size=4, shuffle=True),
    "data length": DataLoader(TensorDataset(torch.zeros(24, 1)), batch_size=2, shuffle=True),
    "shuffle": DataLoader(DATA, batch_size=2),
}


@pytest.mark.parametrize("what", OTHERWISE)
@pytest.mark.filterwarnings("ignore::truestep.errors.SamplesReadAgain")
def test_a_dataloader_that_changes_within_a_pass_is_refused(what, tmp_path):
    for loader in (DataLoader(DATA, batch_size=2, shuffle=True), OTHERWISE[what]):
        run, model = made(tmp_path, max_epochs=1)
        for _ in run.epochs():
            if loader is OTHERWISE[what]:
                with pytest.raises(BadCheckpoint, match=f"^{what} of .DataLoader 1. was .* samples would come twice"):
                    next(run.train(loader))
                break
            for batch in run.train(loader):
                run.step(model(batch[0]).sum())
                if run.global_step == 4:
                    break
            run.close()
            break
