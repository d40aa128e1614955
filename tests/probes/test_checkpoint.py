"""Saving and loading: the events have the contents of the file; the file is the same."""

import io
from pathlib import Path

import torch
from torch import nn

from truestep.events import CheckpointLoaded, CheckpointSaved, StateLoaded
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
