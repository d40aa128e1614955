"""Saving and loading: the events have the contents of the file; the file is the same."""

import io
from pathlib import Path

import torch
from torch import nn

from truestep.events import CheckpointLoaded, CheckpointSaved, OptimizerLoaded, ScheduleMoved, StateLoaded
from truestep.testing import capture_events


def test_what_a_file_holds(tmp_path: Path) -> None:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with capture_events() as events:
        model(torch.ones(1, 2))
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), 3: "x"}, tmp_path / "a.pt")
        torch.save(model, tmp_path / "b.pt")
        loaded = torch.load(tmp_path / "a.pt")
        model.load_state_dict(loaded["model"])
        model.load_state_dict({"weight": torch.zeros(1, 2), "extra": torch.zeros(1)}, strict=False)
    saved = [event for event in events if isinstance(event, CheckpointSaved)]
    assert [(event.holds, event.whole_model) for event in saved] == [
        (("model", "optimizer", "3"), False),
        (("Linear",), True),
    ]
    assert sum(isinstance(event, CheckpointLoaded) for event in events) == 1
    states = [event for event in events if isinstance(event, StateLoaded)]
    assert [(event.model, event.missing, event.unexpected) for event in states] == [(1, 0, 0), (1, 1, 1)]


def test_the_bytes_are_the_same() -> None:
    def written() -> bytes:
        torch.manual_seed(0)
        file = io.BytesIO()
        torch.save(nn.Linear(2, 1).state_dict(), file)
        return file.getvalue()

    plain = written()
    with capture_events():
        assert written() == plain


def test_an_optimizer_that_loads_its_moments_tells_whether_its_weights_are_the_first_ones() -> None:
    torch.manual_seed(0)
    model = nn.Linear(8, 8)
    optimizer = torch.optim.Adam(model.parameters(), 1e-6)
    empty = optimizer.state_dict()
    with capture_events() as events:
        model(torch.randn(4, 8)).sum().backward()
        optimizer.step()
        state = optimizer.state_dict()
        torch.optim.Adam(model.parameters()).load_state_dict(state)
        with torch.no_grad():
            model.weight.mul_(20)
        optimizer.load_state_dict(state)
        optimizer.load_state_dict(empty)
    assert [event.initial for event in events if isinstance(event, OptimizerLoaded)] == [True, False]


def test_states_of_optimizers_and_schedules_in_a_file(tmp_path: Path) -> None:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.Adam(model.parameters(), 0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 5)
    empty = optimizer.state_dict()
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    states = {
        "net": model.state_dict(),
        "optimizers": [optimizer.state_dict()],
        "lr": schedule.state_dict(),
        "epoch": 3,
    }
    torch.save(states, tmp_path / "a.pt")
    torch.save({"optimizer": empty, "loss": [0.1]}, tmp_path / "b.pt")
    torch.save([1], tmp_path / "c.pt")

    def resume() -> int:
        loaded = torch.load(tmp_path / "a.pt")
        model.load_state_dict(loaded["net"])
        return int(loaded["epoch"]) + 1

    def tune() -> None:
        loaded = torch.load(tmp_path / "a.pt")
        print("weights of epoch", loaded["epoch"])

    with capture_events() as events:
        resume()
        tune()
        torch.load(tmp_path / "b.pt")
        torch.load(tmp_path / "c.pt")
    files = [event for event in events if isinstance(event, CheckpointLoaded)]
    assert [(file.optimizers, file.schedules, file.resumes) for file in files] == [
        (1, 1, True),
        (1, 1, False),
        (0, 0, False),
        (0, 0, False),
    ]


def test_schedules_that_are_put_at_a_position() -> None:
    optimizer = torch.optim.SGD(nn.Linear(2, 1).parameters(), 0.1)
    optimizer.param_groups[0]["initial_lr"] = 0.1
    with capture_events() as events:
        plain = torch.optim.lr_scheduler.StepLR(optimizer, 5)
        optimizer.step()
        plain.step()
        assert not [event for event in events if isinstance(event, ScheduleMoved)]
        torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 9, last_epoch=4)
        plain.load_state_dict(plain.state_dict())
        by_hand = torch.optim.lr_scheduler.StepLR(optimizer, 5)
        by_hand.last_epoch = 3
        by_hand.step()
        by_hand.step()
    assert [event.scheduler for event in events if isinstance(event, ScheduleMoved)] == [2, 1, 3]
