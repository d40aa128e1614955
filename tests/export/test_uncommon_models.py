"""Models in uncommon styles: their graphs give the outputs of the models, with real batches and edge shapes."""

import inspect

import exportable
import pytest
import torch
from torch import nn

from truestep.errors import ExportDiffers, NotExportable
from truestep.export import export
from truestep.export.calls import call_from
from truestep.export.examples import edge_calls
from truestep.export.exporting import eager
from truestep.export.outputs import compared, leaves
from truestep.export.shapes import free_dimensions
from truestep.export.tracing import traced

MODELS = [
    name
    for name, kind in inspect.getmembers(exportable, inspect.isclass)
    if issubclass(kind, nn.Module) and kind.__module__ == "exportable" and name != "Base"
]
NOTES = {
    "Remembered": "self.seen changes in forward (",
    "KeepsOutput": "self.last changes in forward (",
    "WithNumber": "forward also returns a value of type float: the exported model returns tensors only",
    "AlwaysTrain": "self.running_mean of norm changes in forward; in the exported model it does not",
}
REFUSED = {
    "AlwaysTrain": "not compared: eager raises ValueError for x [1, 4]: Expected more than 1 value per channel",
    "BatchStatistics": "not compared: eager raises ValueError for x [1, 4]: Expected more than 1 value per channel",
    "NoRunningStatistics": "not compared: eager raises ValueError for x [1, 4]: Expected more than 1 value per channel",
    "OutOfRange": "not compared: eager raises IndexError for x [1, 4]: index out of range in self",
}
"""Beginnings of the notes on edges that eager refuses."""


def batch_of(name):
    torch.manual_seed(0)
    x = torch.randn(8, 4)
    return {"x": x} if name == "KeywordOnly" else x


@pytest.mark.program
@pytest.mark.parametrize("name", MODELS)
def test_the_graph_gives_the_outputs_of_the_model(name, capsys):
    model = getattr(exportable, name)().eval()
    calls = [call_from(model, batch_of(name))]
    dims = free_dimensions(calls)
    edges = edge_calls(calls, dims)
    trace = traced(model, calls, dims, edges)
    pairs, expected, refused = eager(model, calls, edges)
    graph = trace.program.module()
    for (kind, call), output in zip(pairs, expected, strict=True):
        found = compared(leaves(output), leaves(graph(*call.copied().args, **call.copied().kwargs)))
        assert not found["fault"], (kind, call.size, found)
        assert found["relative"] < 1e-5, (kind, call.size, found)
    assert len(pairs) == 1 + 4 - (name in REFUSED)
    assert [note[: len(REFUSED[name])] for note in refused] == ([REFUSED[name]] if name in REFUSED else [])
    assert bool(trace.notes) == (name in NOTES)
    assert not trace.notes or trace.notes[0].startswith(NOTES[name])


@pytest.mark.program
def test_bfloat16_that_onnxruntime_lacks_is_explained(tmp_path):
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    with pytest.raises(ExportDiffers, match="cannot be loaded in a fresh process") as caught:
        export(exportable.Autocast(), tmp_path / "made", to="onnx", batches=[batch_of("Autocast")])
    assert "Could not find an implementation" in caught.value.expected
    assert caught.value.remedy.startswith("compute in float32, without torch.autocast in forward")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.program
@pytest.mark.parametrize("name", ["ReturnsInput", "NoRunningStatistics", "Scalar", "Condition", "Selected"])
def test_models_whose_graphs_are_rewritten_for_onnx_give_the_same_outputs(tmp_path, name):
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    found = export(getattr(exportable, name)(), tmp_path / "made", to="onnx", batches=[batch_of(name)])
    assert found.comparison.passed


@pytest.mark.program
def test_batch_statistics_in_eval_mode_are_refused_for_onnx_with_their_line(tmp_path):
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    with pytest.raises(NotExportable, match=r"return self\.norm\(self\.layer\(x\)\)") as caught:
        export(exportable.AlwaysTrain(), tmp_path / "made", to="onnx", batches=[batch_of("AlwaysTrain")])
    assert caught.value.cause == "batch-statistics"
