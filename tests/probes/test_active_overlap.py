"""Samples that the training and an evaluation share."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import (
    ConcatDataset,
    DataLoader,
    Dataset,
    RandomSampler,
    Sampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

from truestep.config import Options
from truestep.events import CheckSkipped, SamplesShared
from truestep.supervision import Session

DRAW = torch.Generator().manual_seed(1)  # no rounded rows are equal by chance
X, Y = torch.randn(100, 5, generator=DRAW), torch.randint(0, 2, (100,), generator=DRAW)
TABLE = TensorDataset(X, Y)


class Rows(Dataset[Any]):
    """Rows of a table, through a function."""

    def __init__(self, x: Any, y: torch.Tensor, transform: Any = None, first: int = 0) -> None:
        self.x, self.y, self.transform, self.first = x, y, transform, first

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        row = self.x[index]
        return (row if self.transform is None else self.transform(row)), self.y[index]


class Entries(Rows):
    """Rows as dictionaries."""

    def __getitem__(self, index: int) -> Any:  # type: ignore[override]
        return {"number": index % 5, "x": self.x[index], "y": self.y[index]}


def texts(first: int, last: int) -> list[tuple[str, int]]:
    return [(" ".join(str((index * word) % 83) for word in range(5, 25)), index % 2) for index in range(first, last)]


def read(batch: Any) -> Any:
    """Return inputs and labels of texts."""
    rows = [[float(len(text)), *(float(word) for word in text.split()[:4])] for text, _ in batch]
    return torch.tensor(rows) / 100, torch.tensor([label for _, label in batch])


TEXTS, WORDS = texts(0, 100), [(text.split(), label) for text, label in texts(0, 100)]


def of_words(batch: Any) -> Any:
    return read([(" ".join(words), label) for words, label in batch])


class Backwards(Sampler[int]):
    """A sampler that only the program knows."""

    def __iter__(self) -> Any:
        return iter(range(99, -1, -1))


class Parts(Rows):
    """Rows of categories and numbers, each of few values."""

    def __getitem__(self, index: int) -> Any:
        row = self.x[index]
        return (row[:2] > 0).long(), (row[2:] * 4).round(), self.y[index]


class Named(Parts):
    """The same in a dict."""

    def __getitem__(self, index: int) -> Any:
        codes, numbers, y = super().__getitem__(index)
        return {"codes": codes, "numbers": numbers}, y


def noise(row: torch.Tensor) -> torch.Tensor:
    return row + torch.randn(5)


def told(*pairs: tuple[Any, Any], anew: bool = False, again: bool = False) -> list[SamplesShared | CheckSkipped]:
    """Train and evaluate on loaders in turn; return the events about their samples."""
    torch.manual_seed(0)
    events: list[Any] = []
    model = nn.Linear(5, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with Session(Options(active=True), also=events.append) as session:
        for train, evaluation in pairs:
            if anew:
                model.reset_parameters()
            optimizer = torch.optim.SGD(model.parameters(), 0.1) if again else optimizer
            for x, *_, y in train:
                inputs = x if isinstance(x, torch.Tensor) and x.shape[1] == 5 else torch.zeros(len(y), 5)
                nn.functional.cross_entropy(model(inputs), y).backward()
                optimizer.step()
                optimizer.zero_grad()
            model.eval()
            with torch.no_grad():
                for x, *_ in evaluation:
                    model(x if isinstance(x, torch.Tensor) and x.shape[1] == 5 else torch.zeros(4, 5))
            model.train()
    assert session.stop().internal_errors == ()
    skipped = [event for event in events if isinstance(event, CheckSkipped) and event.check == "overlap"]
    return skipped or [event for event in events if isinstance(event, SamplesShared)]


def loader(data: Any, **how: Any) -> DataLoader[Any]:
    return DataLoader(data, 20, **how)


def facts(event: Any) -> tuple[int, int, int, int, bool]:
    return event.samples, event.shared, event.outside, event.beyond, event.by_value


@pytest.mark.parametrize(
    ("train", "evaluation", "expected"),
    [
        (loader(TEXTS, collate_fn=read), loader(TEXTS, collate_fn=read), (100, 100, 0, 0, False)),
        (
            loader(Subset(TEXTS, range(80)), collate_fn=read),
            loader(Subset(TEXTS, range(60, 100)), collate_fn=read),
            (40, 20, 20, 60, False),
        ),
        (loader(texts(0, 80), collate_fn=read), loader(texts(60, 100), collate_fn=read), (40, 20, 20, 60, True)),
        (loader(WORDS[:80], collate_fn=of_words), loader(WORDS[60:], collate_fn=of_words), (40, 20, 20, 60, True)),
        (loader(Subset(TABLE, range(80))), loader(Subset(TABLE, range(60, 100))), (40, 20, 20, 60, False)),
        (loader(Subset(TABLE, range(80))), loader(Subset(TABLE, range(80, 100))), (20, 0, 20, 80, False)),
        (loader(Subset(Subset(TABLE, range(90)), range(80))), loader(Subset(TABLE, range(40))), (40, 40, 0, 40, False)),
        (
            loader(TABLE, sampler=SubsetRandomSampler(range(50))),
            loader(TABLE, sampler=SubsetRandomSampler(range(40, 60))),
            (20, 10, 10, 40, False),
        ),
        (
            loader(ConcatDataset([Subset(TABLE, range(30)), Subset(TABLE, range(50, 70))])),
            loader(Subset(TABLE, range(20, 60))),
            (40, 20, 20, 30, False),
        ),
        (
            loader(TABLE, sampler=WeightedRandomSampler([1.0] * 50 + [0.0] * 50, 20)),
            loader(Subset(TABLE, range(40, 60))),
            (20, 10, 10, 40, False),
        ),
        (
            loader(TABLE, sampler=RandomSampler(TABLE, replacement=True, num_samples=20)),
            loader(Subset(TABLE, [-1, 1, 1, 2])),
            (3, 3, 0, 97, False),
        ),
        (
            loader(Subset(Rows(X, Y, noise), range(80))),
            loader(Subset(Rows(X.clone(), Y.clone()), range(60, 100))),
            (40, 20, 20, 60, False),
        ),
        (loader(Rows(X[:80], Y[:80])), loader(Rows(X[60:], Y[60:])), (40, 20, 20, 60, True)),
        (loader(TensorDataset(X[:80], Y[:80])), loader(Rows(X[60:], Y[60:])), (40, 20, 20, 60, True)),
        (loader(Rows(X[:80].numpy(), Y[:80].numpy())), loader(Rows(X[60:], 1 - Y[60:])), (40, 0, 40, 80, True)),
        (loader(Rows(X[:80], Y[:80], noise)), loader(Rows(X[60:], Y[60:])), (40, 20, 20, 60, True)),
        (loader(Parts(X[:80], Y[:80])), loader(Parts(X[60:], Y[60:])), (40, 20, 20, 60, True)),
        (loader(Named(X[:80], Y[:80])), loader(Named(X[60:], Y[60:])), (40, 20, 20, 60, True)),
    ],
    ids=[
        "list", "parts-of-a-list", "texts", "words",
        "subsets", "split", "subset-of-a-subset", "samplers", "joined", "weights", "replacement", "through-functions",
        "rows", "kinds", "other-labels", "random", "categories and numbers", "dicts",
    ],
)  # fmt: skip
def test_samples_are_counted(train: Any, evaluation: Any, expected: tuple[int, int, int, int, bool]) -> None:
    (event,) = told((train, evaluation))
    assert facts(event) == expected


@pytest.mark.parametrize(
    ("train", "evaluation", "reason"),
    [
        (loader(TABLE, sampler=Backwards()), loader(TABLE), "a custom sampler"),
        (loader(Rows(tuple(X[:80]), Y[:80], noise)), loader(Rows(X[60:], Y[60:])), "change each time"),
        (loader(Rows(X[:80], Y[:80], first=1)), loader(Rows(X.round(), Y)), "equal by chance"),
        (loader(TensorDataset(X.sign(), Y)), loader(TensorDataset(X[60:].sign(), Y[60:])), "equal by chance"),
        (loader(Parts(X.sign(), Y)), loader(Parts(X[60:].sign(), Y[60:])), "equal by chance"),
    ],
    ids=["sampler", "random", "round", "yes-or-no", "few categories"],
)
def test_what_cannot_be_compared_is_passed_over(train: Any, evaluation: Any, reason: str) -> None:
    (event,) = told((train, evaluation))
    assert isinstance(event, CheckSkipped)
    assert reason in event.reason


def test_samples_in_dictionaries_are_compared_by_value() -> None:
    torch.manual_seed(0)
    events: list[Any] = []
    model, train, evaluation = nn.Linear(5, 2), loader(Entries(X[:80], Y[:80])), loader(Entries(X[60:], Y[60:]))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with Session(also=events.append):
        for batch in train:
            nn.functional.cross_entropy(model(batch["x"]), batch["y"]).backward()
            optimizer.step()
            optimizer.zero_grad()
        model.eval()
        with torch.no_grad():
            for batch in evaluation:
                model(batch["x"])
    (event,) = (event for event in events if isinstance(event, SamplesShared))
    assert facts(event) == (40, 20, 20, 60, True)


def test_samples_of_training_before_count_while_the_weights_stay() -> None:
    folds = [(loader(Subset(TABLE, range(60))), loader(Subset(TABLE, range(60, 100))))]
    folds += [(loader(Subset(TABLE, range(40, 100))), loader(Subset(TABLE, range(40))))]
    first, second, later = told(*folds)
    assert (facts(first)[:2], facts(second)[:2], facts(later)[:2]) == ((40, 0), (40, 40), (40, 40))
    assert later.later  # type: ignore[union-attr]


@pytest.mark.parametrize("how", ["anew", "again"])
def test_samples_of_other_weights_do_not_count(how: str) -> None:
    folds = [(loader(Subset(TABLE, range(60))), loader(Subset(TABLE, range(60, 100))))]
    folds += [(loader(Subset(TABLE, range(40, 100))), loader(Subset(TABLE, range(40))))]
    assert [facts(event)[1] for event in told(*folds, **{how: True})] == [0, 0]  # type: ignore[arg-type]


def test_rows_that_repeat_are_emitted_by_how_often() -> None:
    rows = torch.randn(200, 5)
    rows[100:140] = rows[:40]
    labels = torch.zeros(200, dtype=torch.long)
    train, rest = TensorDataset(rows[:160], labels[:160]), TensorDataset(rows[80:], labels[80:])
    (event,) = told((loader(train), loader(rest)))
    assert facts(event) == (120, 80, 40, 40, True)
    assert event.repeated == 60  # type: ignore[union-attr]


@pytest.mark.parametrize(("anew", "earlier"), [(False, [0, 20, 20]), (True, [0, 0, 0])])
def test_samples_of_earlier_folds_count_while_the_weights_go_on(anew: bool, earlier: list[int]) -> None:
    parts = [range(20), range(20, 40), range(40, 60)]
    rest = [[row for row in range(60) if row not in part] for part in parts]
    folds = [(loader(Subset(TABLE, some)), loader(Subset(TABLE, part))) for some, part in zip(rest, parts, strict=True)]
    assert [event.earlier for event in told(*folds, anew=anew, again=True)] == earlier


class Wide(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(5, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x).relu()  # type: ignore[no-any-return]


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("several", [True, False])
def test_each_fold_has_the_samples_of_its_own_model(several: bool, parts: int) -> None:
    torch.manual_seed(0)
    events: list[Any] = []
    folds = [(range(20, 60), range(20)), ([*range(20), *range(40, 60)], range(20, 40)), (range(40), range(40, 60))]
    models = [[Wide(), nn.Linear(4, 2)][-parts:] if parts == 2 else [nn.Linear(5, 2)] for _ in folds]
    optimizers = [torch.optim.SGD([w for part in model for w in part.parameters()], 0.1) for model in models]
    if not several:
        models, optimizers = models[:1] * 3, optimizers[:1] * 3
    with Session(also=events.append) as session:
        for _ in range(2):
            for (some, rest), model, optimizer in zip(folds, models, optimizers, strict=True):
                for x, y in loader(Subset(TABLE, some)):
                    for part in model:
                        x = part(x)
                    nn.functional.cross_entropy(x, y).backward()
                    optimizer.step()
                    optimizer.zero_grad()
                with torch.no_grad():
                    for x, _ in loader(Subset(TABLE, rest)):
                        for part in model:
                            x = part(x)
    assert session.stop().internal_errors == ()
    shared = [event.shared for event in events if isinstance(event, SamplesShared) and not event.later]
    assert shared == ([0] * 6 if several else [0, *[20] * 5])


def test_copies_that_were_made_before_the_split_are_compared_by_value() -> None:
    copied = TensorDataset(torch.cat([X[:40], X[:40], X[:40]]), torch.cat([Y[:40], Y[:40], Y[:40]]))
    (event,) = told((loader(Subset(copied, range(80))), loader(Subset(copied, range(80, 120)))))
    assert facts(event) == (40, 40, 0, 0, True)
    apart = TensorDataset(torch.cat([X[:40], X[:40].round()]), torch.cat([Y[:40], Y[:40]]))
    (event,) = told((loader(Subset(apart, range(40))), loader(Subset(apart, range(40, 80)))))
    assert facts(event) == (40, 0, 40, 40, False)


def looked_at(*loaders: Any, again: bool = False) -> list[SamplesShared]:
    """Look at a batch of each loader, train on the first one with one batch of the last, and evaluate on the second."""
    events: list[Any] = []
    model = nn.Linear(5, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with Session(Options(active=True), also=events.append) as session:
        for one in loaders:
            for _ in one:
                break
        for x, y in loaders[0]:
            if again:
                more, _ = next(iter(loaders[2]))
                x, y = next(iter(loaders[0]))
                model(more)
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        with torch.no_grad():
            for x, *_ in loaders[1]:
                model(x)
    assert session.stop().internal_errors == ()
    return [event for event in events if isinstance(event, SamplesShared)]


@pytest.mark.parametrize("again", [False, True])
def test_a_loader_whose_first_batch_is_only_looked_at_is_not_trained_on(again: bool) -> None:
    rows = TensorDataset(X, Y)
    parts = [loader(Subset(rows, part)) for part in (range(60), range(50, 90), range(90, 100))]
    (event,) = looked_at(*parts, again=again)
    assert event.trained == ((1, 3) if again else (1,))
    assert facts(event) == (40, 10, 30, 60 if again else 50, False)
