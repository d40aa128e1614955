"""Exports that are saved: the event has the modes at the export; the functions and their results are the same."""

import io
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from truestep.events import ModelExported
from truestep.testing import capture_events

pytestmark = pytest.mark.filterwarnings("ignore")
X = torch.ones(4, 3)


def trace(model: nn.Module) -> Any:
    return torch.jit.trace(model, X, check_trace=False)


def saved(prepare: Callable[[nn.Module], Any], *, by: Callable[[nn.Module], Any] = trace) -> list[ModelExported]:
    net = nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.BatchNorm1d(4), nn.Dropout(0.5)), nn.Dropout(0.0))
    prepare(net)
    with capture_events() as events:
        torch.jit.save(by(net), io.BytesIO())
    return [event for event in events if isinstance(event, ModelExported)]


def test_the_layers_in_train_mode_are_counted_and_the_first_one_is_named() -> None:
    (event,) = saved(lambda net: net.train())
    assert (event.by, event.training, event.layers) == ("torch.jit.trace", True, 2)
    assert (event.layer, event.kind, event.name) == ("1.0", "BatchNorm1d", "model")
    assert event.site is not None
    assert event.saved is not None


class Attended(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(3, 1, dropout=dropout)

    def forward(self, x: torch.Tensor) -> Any:
        return self.attention(x, x, x)[0]


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        (nn.LSTM(3, 4, 2, dropout=0.5), "LSTM"),
        (nn.LSTM(3, 4, 1), ""),
        (nn.GRU(3, 4, 2), ""),
        (Attended(0.5), "MultiheadAttention"),
        (Attended(0.0), ""),
    ],
    ids=["lstm", "one layer", "no dropout", "attention", "attention without"],
)
def test_dropout_of_recurrent_layers_and_of_attention_counts_where_the_program_keeps_it(
    model: nn.Module, kind: str
) -> None:
    file = io.BytesIO()
    with capture_events() as events:
        torch.jit.save(trace(model), file)
    (event,) = [event for event in events if isinstance(event, ModelExported)]
    assert (event.layers, event.kind) == (int(bool(kind)), kind)
    file.seek(0)
    loaded = torch.jit.load(file).eval()
    x = torch.randn(4, 3)
    first, second = (out[0] if isinstance(out, tuple) else out for out in (loaded(x), loaded(x)))
    assert torch.equal(first, second) is not bool(kind)


def test_a_model_in_evaluation_mode_has_no_such_layers() -> None:
    (event,) = saved(lambda net: net.eval())
    assert (event.training, event.layers) == (False, 0)


def test_layers_within_a_part_in_evaluation_mode_are_chosen_on_purpose() -> None:
    def part(net: Any) -> None:
        net[1].training = False

    (event,) = saved(part)
    assert (event.training, event.layers) == (True, 0)


def test_a_scripted_model_and_one_that_is_not_saved_emit_nothing() -> None:
    assert saved(lambda net: net.train(), by=torch.jit.script) == []
    with capture_events() as events:
        trace(nn.Dropout(0.5))
    assert not any(isinstance(event, ModelExported) for event in events)


def test_a_program_of_torch_export_is_met_when_it_is_saved(tmp_path: Any) -> None:
    net = nn.Dropout(0.5)
    with capture_events() as events:
        program = torch.export.export(net, (X,))
        torch.export.save(program, tmp_path / "a.pt2")
        torch.export.save(program, tmp_path / "b.pt2")
        trace(net).save(str(tmp_path / "c.pt"))
    exported = [event for event in events if isinstance(event, ModelExported)]
    assert [(one.by, one.name, one.layer, one.kind) for one in exported] == [
        ("torch.export.export", "net", "", "Dropout"),
        ("torch.jit.trace", "model", "", "Dropout"),
    ]


def test_the_functions_are_restored_and_keep_their_names() -> None:
    def functions() -> list[Any]:
        return [torch.export.export, torch.export.save, torch.jit.trace, torch.jit.save, torch.jit.ScriptModule.save]

    before = functions()
    with capture_events():
        assert [one.__name__ for one in functions()] == [one.__name__ for one in before]
        assert torch.export.export is not before[0]
    assert functions() == before
