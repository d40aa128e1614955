"""Saving and loading: the events have the contents of the file; the file is the same."""

import io
from pathlib import Path

import torch
from torch import nn

from truestep.events import CheckpointLoaded, CheckpointSaved, OptimizerLoaded, StateLoaded
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
