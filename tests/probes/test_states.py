"""State dicts: kept ones are recognized, and the names that a load without `strict` ignored are read."""

import copy
import inspect
from typing import Any

import torch
from torch import nn

from truestep.events import StateLoaded
from truestep.supervision import Session
from truestep.testing import capture_events


def loads(events: list[Any]) -> list[StateLoaded]:
    return [event for event in events if isinstance(event, StateLoaded)]


def train(model: nn.Module, optimizer: torch.optim.Optimizer, steps: int) -> None:
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.ones(4, 3)).sum().backward()
        optimizer.step()


def test_a_kept_state_is_emitted_when_it_is_loaded_after_steps() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with capture_events() as events:
        state = model.state_dict()
        kept, copied = dict(state), copy.deepcopy(state)
        model.load_state_dict(state)
        train(model, optimizer, 12)
        model.load_state_dict(state_dict=kept)
        model.load_state_dict(copied)
        nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)).load_state_dict(kept)
    at_once, own, *others = loads(events)
    assert at_once.taken is None
    assert (own.taken_steps, own.overwritten) == (10, False)
    assert own.taken is not None
    assert own.taken.line < own.site.line  # type: ignore[union-attr]
    assert [event.taken for event in others] == [None, None]


def test_a_backup_is_emitted_when_other_weights_were_loaded_over_it() -> None:
    model = nn.Linear(3, 3)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with capture_events() as events:
        train(model, optimizer, 1)
        backup = model.state_dict()
        model.load_state_dict(nn.Linear(3, 3).state_dict())
        model.load_state_dict(backup)
    assert [(event.taken is not None, event.overwritten) for event in loads(events)] == [(False, False), (True, True)]


def test_a_model_without_an_optimizer_is_not_emitted() -> None:
    model = nn.Linear(3, 3)
    with capture_events() as events:
        backup = model.state_dict()
        model.load_state_dict(nn.Linear(3, 3).state_dict())
        model.load_state_dict(backup)
    assert [event.taken for event in loads(events)] == [None, None]


def test_a_kept_state_is_known_while_coasting() -> None:
    model = nn.Linear(3, 3)
    optimizer = torch.optim.SGD(model.parameters(), 1e-4)
    with Session() as session:
        train(model, optimizer, 280)
        state = model.state_dict()
        train(model, optimizer, 20)
        model.load_state_dict(state)
    (finding,) = session.findings
    assert finding.rule == "best-weights-aliased"
    assert "about 20 steps" in finding.cost
    assert session.steps == 300


def test_what_a_load_that_is_not_strict_passed_by_is_read() -> None:
    def model() -> nn.Sequential:
        return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))

    state = model().state_dict()
    with capture_events() as events:
        model().load_state_dict({f"net.module.{name}": value for name, value in state.items()}, strict=False)
        model().load_state_dict({"epoch": 3, "model": state}, strict=False)
        nn.Sequential(model(), nn.Linear(2, 2)).load_state_dict(state, strict=False)
        model().load_state_dict({"0._orig_mod.weight": state["0.weight"], "2.bias": state["2.bias"]}, strict=False)
        print(model().load_state_dict({"other": torch.ones(1)}, strict=False))
        model().load_state_dict(state, strict=True)
    seen = [(e.unread, e.matched, e.dropped, e.found, e.added or e.lacking or e.inner) for e in loads(events)]
    assert seen == [
        (True, 0, 4, 4, "net.module."),
        (True, 0, 4, 4, "model"),
        (True, 0, 6, 4, "0."),
        (True, 1, 3, 1, "_orig_mod."),
        (False, 0, 0, 0, ""),
        (False, 0, 0, 0, ""),
    ]


def test_the_methods_look_as_ever() -> None:
    before = [inspect.signature(nn.Module.load_state_dict), inspect.signature(nn.Module.state_dict)]
    with Session():
        assert [inspect.signature(nn.Module.load_state_dict), inspect.signature(nn.Module.state_dict)] == before
        assert list(nn.Module.state_dict(self=nn.Linear(1, 1))) == ["weight", "bias"]


def test_no_tensor_of_a_state_is_kept() -> None:
    import gc
    import weakref

    with Session():
        model = nn.Linear(2, 2)
        state = model.state_dict()
        model.load_state_dict(state)
        model.load_state_dict({"x.weight": torch.ones(2, 2)}, strict=False)
        gone = [weakref.ref(tensor) for tensor in (*state.values(), *model.parameters())]
        del model, state
        gc.collect()
        assert [ref() for ref in gone] == [None] * len(gone)


def test_lazy_and_odd_modules_are_loaded_as_ever() -> None:
    class Extra(nn.Linear):
        def get_extra_state(self) -> dict[str, int]:
            return {"a": 1}

        def set_extra_state(self, state: Any) -> None:
            self.extra = state

    with Session() as session:
        lazy = nn.LazyLinear(2)
        lazy.load_state_dict(lazy.state_dict())
        lazy.load_state_dict({"module.weight": torch.ones(2, 3)}, strict=False)
        extra = Extra(2, 2)
        extra.load_state_dict(extra.state_dict())
        empty = nn.ReLU()
        empty.load_state_dict(empty.state_dict())
        with torch.device("meta"):
            meta = nn.Linear(2, 2)
        meta.load_state_dict(nn.Linear(2, 2).state_dict(), assign=True)
        meta.load_state_dict(meta.state_dict())
    assert session.stop().internal_errors == ()
