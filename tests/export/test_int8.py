"""Exports with int8 linear layers: accuracy, speed and size before and after, and refusals that leave nothing."""

import importlib.util
import json
import sys

import pytest
import torch
from torch import nn

from truestep import Run, data
from truestep.cli import main
from truestep.errors import BadInputs, LessAccurate, PackageMissing, UsageError
from truestep.experiments.inference.of_artefact import exports_at
from truestep.export import export
from truestep.export.int8 import quantising
from truestep.export.int8.scores import scores
from truestep.export.int8.table import table, verdict
from truestep.export.int8.wanted import Int8, wanted


@pytest.fixture(scope="module")
def torchao():
    """Skip a test without torchao; its import warns, so that it is only looked for."""
    if importlib.util.find_spec("torchao") is None:
        pytest.skip("torchao is not installed")


@pytest.fixture(scope="module")
def digits():
    """A trained classifier of digits, its validation batches, and its training batches."""
    load_digits = pytest.importorskip("sklearn.datasets", reason="scikit-learn is not installed").load_digits
    images, labels = load_digits(return_X_y=True)
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
    x, y = torch.tensor(images / 16, dtype=torch.float32)[order], torch.tensor(labels)[order]
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
        optimizer = torch.optim.Adam(model.parameters(), 1e-2)
        for step in range(120):
            rows = slice(step % 20 * 64, step % 20 * 64 + 64)
            nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
            optimizer.step()
            optimizer.zero_grad()
    return model.eval(), [(x[at : at + 64], y[at : at + 64]) for at in range(1400, len(x), 64)]


def one_large_column(model):
    """A model of the same function whose first layer int8 cannot represent: one input is 2000 times as large.

    Rows of inputs have one scale, so that all other inputs are rounded to zero.
    """
    first = nn.Linear(65, 128)
    with torch.no_grad():
        first.weight.copy_(torch.cat([model[0].weight, torch.zeros(128, 1)], 1))
        first.bias.copy_(model[0].bias)
    return nn.Sequential(first, nn.ReLU(), model[2]).eval()


def with_large_column(batches):
    return [(torch.cat([x, torch.full((len(x), 1), 2000.0)], 1), y) for x, y in batches]


def folders(place):
    return sorted(path.name for path in place.iterdir())


@pytest.mark.program
def test_a_classifier_keeps_its_accuracy_and_its_graph_needs_no_torchao(tmp_path, torchao, digits):
    model, batches = digits
    before = {name: value.clone() for name, value in model.state_dict().items()}
    found = export(model, tmp_path / "made", to="pt2", batches=iter(batches), quantise=Int8())
    said = found.config["quantisation"]
    assert (said["kind"], said["from"], said["layers"], said["linear_layers"]) == ("int8", "float32", 2, 2)
    metric = said["metric"]
    assert (metric["name"], metric["samples"], metric["most_drop"]) == ("accuracy", 397, 0.01)
    right = sum(int((model(x).argmax(1) == y).sum()) for x, y in batches)
    assert metric["before"] == pytest.approx(right / 397)
    assert metric["before"] > 0.9
    assert abs(metric["drop"]) <= 0.01
    assert [one["batch"] for one in said["latency"]] == [1, 64]
    assert all(one["before_s"] > 0 and one["after_s"] > 0 for one in said["latency"])
    assert found.comparison.passed
    assert found.comparison.tolerance == 5e-2
    assert json.loads((found.folder / "config.json").read_text()) == found.config
    assert "equal to int8 in eager" in str(found)
    loaded = torch.export.load(found.file)
    kinds = {type(value) for value in loaded.state_dict.values()}
    assert kinds <= {torch.Tensor, nn.Parameter}
    assert {value.dtype for value in loaded.state_dict.values()} == {torch.float32, torch.int8}
    with torch.no_grad():
        assert torch.equal(loaded.module()(batches[0][0]), quantising.quantised(model)(batches[0][0]))
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_a_classifier_that_int8_harms_is_refused_and_nothing_is_written(tmp_path, torchao, digits):
    model, batches = digits
    with pytest.raises(LessAccurate) as caught:
        export(
            one_large_column(model), tmp_path / "made", to="pt2", batches=with_large_column(batches), quantise=Int8()
        )
    assert caught.value.exit_code == 1
    assert caught.value.happened.startswith("the accuracy of Sequential falls by 0.")
    assert "with int8, in 397 samples" in caught.value.happened
    assert caught.value.expected == "expected at most 0.01: nothing was written"
    assert folders(tmp_path) == []


@pytest.mark.program
def test_onnx_multiplies_in_int8(tmp_path, torchao, digits):
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    model, batches = digits
    found = export(model, tmp_path / "made", to="onnx", batches=batches, quantise=Int8())
    assert found.comparison.runtime.startswith("onnxruntime")
    operators = [node.op_type for node in onnx.load(found.file).graph.node]
    assert operators.count("MatMulInteger") == 2
    assert "MatMul" not in operators
    assert "Gemm" not in operators


def test_layers_in_float64_are_an_error(torchao):
    with pytest.raises(BadInputs, match="Sequential has linear layers in float64"):
        quantising.quantised(nn.Sequential(nn.Linear(2, 2)).double())


def test_a_model_without_linear_layers_is_an_error(tmp_path, torchao):
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten())
    with pytest.raises(BadInputs, match="Sequential has no linear layer to quantise"):
        export(model, tmp_path / "made", to="pt2", batches=[(torch.ones(2, 1, 4, 4), torch.zeros(2))], quantise=Int8())
    assert folders(tmp_path) == []


def test_formats_and_packages_that_do_not_fit_are_errors(tmp_path, monkeypatch):
    given = {"batches": [torch.ones(2, 4)], "quantise": Int8()}
    with pytest.raises(UsageError, match="weights in safetensors are not quantised"):
        export(nn.Linear(4, 2), tmp_path / "made", to="safetensors", factory="network:Net", **given)
    monkeypatch.setitem(sys.modules, "torchao", None)
    monkeypatch.setattr(quantising.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(PackageMissing, match="int8 needs torchao, which is not installed") as caught:
        export(nn.Linear(4, 2), tmp_path / "made", to="pt2", **given)
    assert "truestep[quantise]" in caught.value.remedy
    assert folders(tmp_path) == []


def test_the_wish_is_read_and_wrong_ones_are_errors():
    assert wanted(None, None, None) is None
    assert wanted("int8", None, None) == Int8(0.01)
    assert wanted("int8", 0.0, max) == Int8(0.0, max)
    for kind, most, metric, said in (
        ("int4", None, None, '"int4" is not a quantisation'),
        (None, 0.1, None, "most_drop and metric are for quantised exports"),
        ("int8", -1.0, None, "most_drop must be a number of at least 0, got -1.0"),
        ("int8", float("nan"), None, "most_drop must be a number of at least 0, got nan"),
        ("int8", None, 3, "metric must be a function, got a int"),
    ):
        with pytest.raises(UsageError) as caught:
            wanted(kind, most, metric)
        assert caught.value.happened == said


# --- the metric ----------------------------------------------------------------------------------------------------


class Fixed(nn.Module):
    """A model that returns its input, and a copy of it that returns something else."""

    def __init__(self, change=lambda x: x):
        super().__init__()
        self.change = change

    def forward(self, x):
        return self.change(x)


def compared(x, y, change, **options):
    return scores(Fixed(), Fixed(change), [(x, y)], None, options.get("metric"))


def test_classes_give_an_accuracy_over_all_batches():
    x, y = torch.eye(4), torch.tensor([0, 1, 2, 0])
    found = scores(Fixed(), Fixed(lambda x: x.roll(1, 1)), [(x, y), (x[:2], y[:2])], None, None)
    assert (found.name, found.before, found.after, found.samples) == ("accuracy", 5 / 6, 1 / 6, 6)
    assert found.drop == pytest.approx(4 / 6)


@pytest.mark.parametrize("shape", [(2, 3, 5), (2, 5, 3), (2, 5, 3, 3)])
def test_classes_of_sequences_and_pixels_are_found_and_ignored_labels_are_left_out(shape):
    x = torch.randn(shape)
    at = x.dim() - 1 if shape[-1] == 5 else 1
    y = x.argmax(at)
    y.view(-1)[:2] = -100
    found = compared(x, y, lambda x: -x)
    assert (found.before, found.after, found.samples) == (1.0, 0.0, y.numel() - 2)


def test_numbers_give_a_squared_error_whose_rise_is_relative():
    x, y = torch.tensor([[1.0], [2.0]]), torch.tensor([2.0, 4.0])
    found = compared(x, y, lambda x: x - 1)
    assert (found.name, found.before, found.after) == ("mean squared error", 2.5, 6.5)
    assert found.drop == pytest.approx(1.6)
    assert compared(x, x[:, 0], lambda x: x + 1).drop == float("inf")
    assert compared(x, x[:, 0], lambda x: x).drop == 0


def test_nan_after_is_a_loss():
    assert compared(torch.eye(3), torch.arange(3), lambda x: x, metric=lambda out, batch: 1.0).drop == 0
    found = compared(torch.ones(2, 1), torch.full((2,), 2.0), lambda x: x * float("nan"))
    assert found.drop == float("inf")


def test_a_metric_of_the_user_gets_outputs_and_batches():
    def minus_loss(output, batch):
        return -nn.functional.mse_loss(output, batch[1])

    x, y = torch.ones(2, 3), torch.zeros(2, 3)
    found = compared(x, y, lambda x: x * 2, metric=minus_loss)
    assert (found.name, found.before, found.after, found.drop) == ("minus_loss", -1.0, -4.0, 3.0)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (torch.ones(4, 1), torch.tensor([0.0, 1.0, 1.0, 0.0])),  # logits or probabilities
        (torch.ones(4, 1), torch.tensor([0, 1, 1, 0])),
        (torch.ones(4), torch.tensor([0, 1, 1, 0])),
        (torch.ones(4, 3), torch.tensor([0, 1, 3, 0])),  # more labels than scores
        (torch.ones(4, 3, 3), torch.ones(4, 3, dtype=torch.long)),  # classes in either dimension
        (torch.ones(4, 2), torch.rand(4)),
    ],
)
def test_labels_without_a_clear_metric_are_refused(x, y):
    with pytest.raises(BadInputs, match="allow no metric") as caught:
        compared(x, y, lambda x: x)
    assert "pass metric=" in caught.value.remedy


def test_batches_without_labels_are_refused():
    for batch in (torch.ones(2, 3), (torch.ones(2, 3),), {"x": torch.ones(2, 3)}):
        with pytest.raises(BadInputs, match="have no labels"):
            scores(Fixed(), Fixed(), [batch], None, None)
    labelled = {"x": torch.eye(3), "labels": torch.arange(3)}
    assert scores(Fixed(), Fixed(), [labelled], None, None).before == 1.0
    fields = (torch.arange(3), torch.eye(3), torch.arange(3))
    assert scores(Fixed(), Fixed(), [fields], lambda batch: batch[1], None).before == 1.0


def test_one_table_has_metric_speed_and_size():
    found = {
        "kind": "int8",
        "from": "float32",
        "metric": {"name": "accuracy", "before": 0.9547, "after": 0.9522, "drop": 0.0025, "most_drop": 0.01},
        "latency": [{"batch": 1, "before_s": 2e-5, "after_s": 4e-5}, {"batch": 64, "before_s": 2e-3, "after_s": 1e-3}],
        "bytes": {"before": 2_000_000, "after": 600_000},
    }
    assert table(found) == [
        "           accuracy  1 sample  64 samples    size",
        "  float32    0.9547     20 us        2 ms    2 MB",
        "  int8       0.9522     40 us        1 ms  600 kB",
    ]
    assert verdict(found) == (
        "accuracy fell by 0.0025 (at most 0.01); 0.5x as fast with 1 sample; 2x as fast with 64 samples; 0.3x the size"
    )
    found["metric"] = {"name": "mean squared error", "before": 2.0, "after": 1.9, "drop": -0.05, "most_drop": 0.01}
    assert verdict(found).startswith("mean squared error did not rise;")


# --- the command and the run ---------------------------------------------------------------------------------------

NETWORK = """
from torch import nn

class Net(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))

def always(output, batch):
    return 1.0

kept = {}

def closer(output, batch):
    # The first output for a batch is right, and any other one is wrong by its distance.
    first = kept.setdefault(float(batch[0].sum()), output.clone())
    return -float((output - first).abs().max())
"""


@pytest.fixture
def checkpoint(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "int8_network", raising=False)
    (tmp_path / "int8_network.py").write_text(NETWORK)
    torch.save([(torch.randn(6, 4), torch.arange(6) % 3) for _ in range(2)], tmp_path / "inputs.pt")
    with Run(out="runs/lab", seed=1, max_epochs=1, device="cpu", progress=False) as run:
        loader = run.loader(data.tensors(torch.randn(12, 4), torch.arange(12) % 3), batch_size=6)
        model = run.model(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)))
        run.optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
        for _ in run.epochs():
            for x, y in run.train(loader, model):
                run.step(nn.functional.cross_entropy(model(x), y))
            run.save()
    return tmp_path


def call(*arguments):
    with pytest.raises(SystemExit) as ended:
        main(["export", "runs/lab", "--model", "int8_network:Net", "--inputs", "inputs.pt", *arguments])
    return ended.value.code


@pytest.mark.program
def test_the_command_prints_one_table_and_writes_a_card(checkpoint, torchao, capsys):
    assert call("--quantise", "int8", "--metric", "int8_network:always") == 0
    said = capsys.readouterr().out
    assert "int8 in 2 of 2 linear layers; torch" in said
    assert "  float32  1.0000" in said
    assert "always did not fall;" in said
    assert "compared with int8 in eager in a fresh process" in said
    assert all(len(line) <= 80 for line in said.splitlines()), said
    card = (checkpoint / "runs/lab/export/pt2-int8/README.md").read_text()
    assert "## Quantisation\n\n2 of 2 linear layers have int8 weights" in card
    assert "| float32 | 1.0000 |" in card
    assert call() == 0
    assert list(exports_at(checkpoint / "runs/lab/export")) == ["pt2", "int8 pt2"]
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        options = ["--inputs", "inputs.pt", "--budget", "5", "--only", "pt2,int8 pt2,int8", "--batch", "6"]
        main(["bench-inference", *options, "--format", "json", "runs/lab/export"])
    assert ended.value.code == 0
    measured = json.loads(capsys.readouterr().out)
    rows = {row["name"]: row["status"] for row in measured["settings"][0]["rows"]}
    assert {"eager", "pt2", "int8", "int8 pt2"} <= set(rows)
    assert rows["int8"] == rows["int8 pt2"] == "differs"


def test_the_command_refuses_with_exit_code_1(checkpoint, torchao, capsys):
    assert call("--quantise", "int8", "--metric", "int8_network:closer", "--most-drop", "0") == 1
    assert "LessAccurate: the closer of Net falls by " in capsys.readouterr().err
    assert not (checkpoint / "runs/lab/export").exists()
    assert call("--most-drop", "0.1") == 2
    assert "most_drop and metric are for quantised exports" in capsys.readouterr().err


@pytest.mark.program
def test_a_run_exports_in_int8(tmp_path, torchao, capsys):
    with Run(out=tmp_path / "run", seed=1, max_epochs=1, device="cpu", progress=False) as run:
        loader = run.loader(data.tensors(torch.randn(12, 4), torch.arange(12) % 3), batch_size=5)
        model = run.model(nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 3)))
        found = run.export(model, loader, quantise="int8", most_drop=1.0)
        assert all(type(parameter) is nn.Parameter for parameter in model.parameters())
    assert found.folder == tmp_path / "run" / "export" / "pt2-int8"
    assert found.config["quantisation"]["metric"]["samples"] == 12
    assert "equal to int8 in eager" in capsys.readouterr().err
