"""Exports are loaded again in a fresh process, compared with the model there, and written only if they are equal."""

import json

import pytest
import torch
from torch import nn

from truestep.errors import ExportDiffers, FileExists, PackageMissing, UsageError
from truestep.export import comparing, export
from truestep.export.calls import Call
from truestep.export.exporting import CONFIG
from truestep.export.formats import onnx, pt2


class Net(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.one, self.norm, self.drop = nn.Linear(4, width), nn.BatchNorm1d(width), nn.Dropout()
        self.two = nn.Linear(width, 3)

    def forward(self, x):
        return {"logits": self.two(self.drop(self.norm(self.one(x)).relu()))}


class Squeezed(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def forward(self, x):
        y = self.layer(x)
        return y.squeeze() if len(x) > 1 else y


def batches(count=2, size=6):
    return [(torch.randn(size, 4), torch.zeros(size)) for _ in range(count)]


@pytest.mark.program
def test_a_graph_runs_in_a_fresh_process(tmp_path):
    model = Net().train()
    model.norm.running_mean.normal_()
    found = export(model, tmp_path / "made", to="pt2", batches=batches())
    assert found.comparison.passed
    assert found.comparison.relative <= found.comparison.tolerance == 1e-4
    assert [(row.kind, row.size) for row in found.comparison.rows] == [
        *(("real", size) for size in (6, 6)),
        *(("edge", size) for size in (1, 2, 5, 6)),
    ]
    assert model.training
    config = json.loads((tmp_path / "made" / CONFIG).read_text())
    assert config == found.config
    assert config["inputs"] == [{"name": "x", "dtype": "float32", "shape": ["batch", 4]}]
    assert config["outputs"] == [{"dtype": "float32", "shape": ["batch", 3]}]
    assert config["comparison"]["batch_sizes"] == [1, 2, 5, 6]
    loaded = torch.export.load(found.file).module()
    x = torch.randn(3, 4)
    torch.testing.assert_close(loaded(x)["logits"], model.eval()(x)["logits"])
    assert "largest difference" in str(found)


@pytest.fixture
def altered(monkeypatch):
    """The written graph has another bias than the model."""
    write = pt2.write

    def altering(source, path):
        with torch.no_grad():
            source.program.state_dict["two.bias"] += 1e-2
        write(source, path)

    monkeypatch.setattr(pt2, "write", altering)


def test_an_export_that_differs_is_an_error_and_leaves_nothing(tmp_path, altered):
    with pytest.raises(ExportDiffers) as caught:
        export(Net(), tmp_path / "made", to="pt2", batches=batches(1))
    assert caught.value.exit_code == 1
    assert "differs from the model in 5 of 5 calls" in caught.value.happened
    assert "expected at most 1e-04, got for x [" in caught.value.expected
    assert list(tmp_path.iterdir()) == []


def test_a_tolerance_is_respected(tmp_path, altered):
    found = export(Net(), tmp_path / "made", to="pt2", batches=batches(1), tolerance=1.0)
    assert 1e-4 < found.comparison.relative < 1.0


def test_folders_of_another_origin_are_kept(tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(FileExists, match="has files that are not an export"):
        export(Net(), tmp_path, to="pt2", batches=batches())
    with pytest.raises(FileExists, match="is a file"):
        export(Net(), tmp_path / "letter.txt", to="pt2", batches=batches())


def test_a_format_without_its_packages_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(onnx, "PACKAGES", ("no_such_package",))
    with pytest.raises(PackageMissing, match="no_such_package"):
        export(Net(), tmp_path / "made", to="onnx", batches=batches())
    with pytest.raises(UsageError, match='"tflite" is not a format'):
        export(Net(), tmp_path / "made", to="tflite", batches=batches())
    with pytest.raises(UsageError, match="needs the factory"):
        export(Net(), tmp_path / "made", to="safetensors", batches=batches())


@pytest.mark.parametrize(("kind", "limits"), [("short", 1), ("edge", 0)])
def test_only_short_inputs_may_be_refused(tmp_path, monkeypatch, kind, limits):
    refusal = {
        "fault": "AssertionError: Guard failed",
        "raised": True,
        "largest": float("inf"),
        "relative": float("inf"),
    }
    equal = {"fault": "", "largest": 0.0, "relative": 0.0}
    document = {"runtime": "torch", "error": "", "imported": [], "rows": [equal, refusal]}
    monkeypatch.setattr(comparing, "_called", lambda *_: (document, ""))
    model, call = Net(), Call((torch.ones(2, 4),), {}, ("x",))
    pairs, outputs = [("real", call), (kind, call)], [torch.ones(2), torch.ones(2)]
    found = comparing.compare(tmp_path, "pt2", model, pairs, outputs, tolerance=1e-4, forbidden=())
    assert found.passed == (limits == 1)
    assert list(found.limits) == ["the export refuses x [2, 4]: AssertionError: Guard failed"] * limits


def test_a_file_that_cannot_be_loaded_and_one_that_needs_python_are_errors(tmp_path, monkeypatch):
    model, call = Net(), Call((torch.ones(2, 4),), {}, ("x",))

    def compare():
        comparing.compare(
            tmp_path, "pt2", model, [("real", call)], [torch.ones(2)], tolerance=1e-4, forbidden=["network"]
        )

    monkeypatch.setattr(comparing, "_called", lambda *_: (None, "Killed"))
    with pytest.raises(ExportDiffers, match="cannot be loaded in a fresh process"):
        compare()
    document = {"runtime": "torch", "error": "", "imported": ["network"], "rows": []}
    monkeypatch.setattr(comparing, "_called", lambda *_: (document, ""))
    with pytest.raises(ExportDiffers, match="needs network"):
        compare()


FACTORY = """
import torch
from torch import nn

class Tied(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.word, self.head = nn.Embedding(9, width), nn.Linear(width, 9, bias=False)
        self.head.weight = self.word.weight
        self.norm = nn.BatchNorm1d(width)

    def forward(self, tokens):
        return self.head(self.norm(self.word(tokens).mean(1)))
"""


def test_weights_are_loaded_by_a_model_built_from_the_config(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "tied_network.py").write_text(FACTORY)
    from truestep.export.factories import build

    model = build("tied_network:Tied", {"width": 8})
    tokens = [torch.randint(0, 9, (5, length)) for length in (3, 4)]
    found = export(
        model, tmp_path / "made", to="safetensors", batches=tokens, factory="tied_network:Tied", arguments={"width": 8}
    )
    assert found.comparison.largest == 0
    assert found.config["model"]["arguments"] == {"width": 8}
    assert found.config["inputs"][0]["shape"] == ["batch", "length"]
    again = export(
        model, tmp_path / "made", to="safetensors", batches=tokens, factory="tied_network:Tied", arguments={"width": 8}
    )
    assert again.folder == found.folder  # replaced
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".made")] == []


def test_onnxruntime_has_the_threads_of_torch(tmp_path, monkeypatch):
    package = pytest.importorskip("onnx", reason="onnx is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    values = [package.helper.make_tensor_value_info(name, package.TensorProto.FLOAT, [2]) for name in ("x", "y")]
    graph = package.helper.make_graph([package.helper.make_node("Relu", ["x"], ["y"])], "graph", values[:1], values[1:])
    opset = [package.helper.make_opsetid("", 18)]
    package.save(package.helper.make_model(graph, opset_imports=opset, ir_version=10), tmp_path / "model.onnx")
    given = []
    session = runtime.InferenceSession

    def watched(path, options, **named):
        given.append(options.intra_op_num_threads)
        return session(path, options, **named)

    monkeypatch.setattr(runtime, "InferenceSession", watched)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    call, _ = onnx.load(tmp_path / "model.onnx")
    assert call((torch.tensor([-1.0, 2.0]),), {})[0].tolist() == [0.0, 2.0]
    assert given == [3]


@pytest.mark.slow
def test_onnx_agrees_with_onnxruntime_and_names_its_dimensions(tmp_path):
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    found = export(Net(), tmp_path / "made", to="onnx", batches=batches())
    assert found.comparison.runtime.startswith("onnxruntime")
    import onnx as package

    graph = package.load(found.file).graph
    shape = graph.input[0].type.tensor_type.shape.dim
    assert (graph.input[0].name, shape[0].dim_param, shape[1].dim_value) == ("x", "batch", 4)
    assert graph.output[0].type.tensor_type.shape.dim[0].dim_param == "batch"


@pytest.mark.slow
def test_a_squeeze_that_depends_on_the_batch_is_found(tmp_path):
    from truestep.errors import NotExportable

    with pytest.raises(NotExportable, match="if len") as caught:
        export(Squeezed(), tmp_path / "made", to="pt2", batches=batches())
    assert caught.value.cause in ("fixed-size", "data-dependent-control-flow")


@pytest.mark.slow
def test_compiled_code_runs_without_the_models_python(tmp_path):
    found = export(Net(), tmp_path / "made", to="aoti", batches=batches())
    assert found.comparison.runtime.startswith("AOTInductor")
    loaded = torch._inductor.aoti_load_package(str(found.file))
    assert loaded(torch.randn(7, 4))["logits"].shape == (7, 3)


@pytest.mark.slow
@pytest.mark.parametrize("to", ["pt2", "onnx"])
def test_a_model_of_transformers_is_exported(tmp_path, to):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    config = transformers.BertConfig(
        vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, num_labels=3
    )
    model = transformers.BertForSequenceClassification(config)
    made = [
        {
            "input_ids": torch.randint(0, 50, (4, length)),
            "attention_mask": torch.ones(4, length, dtype=torch.int64),
            "labels": torch.zeros(4, dtype=torch.int64),
        }
        for length in (6, 9)
    ]
    found = export(model, tmp_path / "made", to=to, batches=made)
    assert found.comparison.passed
    assert [each["name"] for each in found.config["inputs"]] == ["input_ids", "attention_mask"]
    assert all(each["shape"] == ["batch", "length"] for each in found.config["inputs"])
    assert not any("refuses" in note for note in found.notes)
