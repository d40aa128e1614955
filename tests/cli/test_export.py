"""`truestep export`: a checkpoint on the command line."""

import json
import sys

import pytest
import torch
import yaml
from torch import nn

from truestep import Run, data
from truestep.cli import main
from truestep.config import Options
from truestep.errors import BadCheckpoint, BadPart
from truestep.supervision import Session

NETWORK = """
from torch import nn

class Net(nn.Sequential):
    def __init__(self, width):
        super().__init__(nn.Linear(4, width), nn.ReLU(), nn.Linear(width, 3))

class Choosing(Net):
    def forward(self, x):
        if x.sum() > 0:
            return super().forward(x)
        return x
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A run with a model, its average, and a module that builds it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "exported_network", raising=False)
    (tmp_path / "exported_network.py").write_text(NETWORK)
    torch.save([torch.randn(6, 4), torch.randn(6, 4)], tmp_path / "inputs.pt")
    with Run(out="runs/lab", seed=1, max_epochs=1, device="cpu", progress=False) as run:
        dataset = data.tensors(torch.randn(12, 4), torch.arange(12) % 3, mean=0.5, std=2.0, classes=("a", "b", "c"))
        loader = run.loader(dataset, batch_size=6)
        model = run.model(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)))
        optimizer = run.optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
        ema = run.ema(model, 0.5)
        for _ in run.epochs():
            for x, y in run.train(loader, model):
                run.step(nn.functional.cross_entropy(model(x), y))
            accuracy = run.mean("accuracy")
            accuracy.update(torch.arange(12) % 2 == 0)
            run.log({"accuracy": accuracy, "loss": 0.25})
            run.save(metric=1.0)
    assert optimizer is not None
    return tmp_path, model, ema


def call(*arguments):
    with pytest.raises(SystemExit) as ended:
        main(["export", *map(str, arguments)])
    return ended.value.code


def test_a_checkpoint_is_exported_with_its_average(folder, capsys):
    place, model, ema = folder
    status = call(
        "runs/lab/best", "--model", "exported_network:Net", "--argument", "width=8", "--inputs", "inputs.pt",
        "--to", "safetensors", "--weights", "ema",
    )  # fmt: skip
    said = capsys.readouterr().out
    assert status == 0, said
    assert "tolerance 1e-04: equal" in said
    assert all(len(line) <= 80 for line in said.splitlines()), said
    config = json.loads((place / "runs/lab/export/safetensors/config.json").read_text())
    assert config["weights"] == {"checkpoint": "step-000002", "name": "ema", "step": 2, "epoch": 1, "metric": 1.0}
    assert config["preprocessing"]["std"] == 2.0
    card = (place / "runs/lab/export/safetensors/README.md").read_text()
    head = yaml.safe_load(card.split("---")[1])
    assert head["tags"] == ["pytorch", "safetensors"]
    assert "| accuracy | 0.5 | 0.2538 to 0.7462 | 12 |" in card
    assert "| loss | " in card
    assert "| seed | `1` |" in card
    assert "largest difference 0, relative 0, tolerance 1e-04" in card
    assert "None: the training before the weights were saved was not supervised" in card
    from safetensors.torch import load_file

    weights = load_file(place / "runs/lab/export/safetensors/model.safetensors")
    assert all(torch.equal(weights[key], value) for key, value in ema.model.state_dict().items())
    assert not torch.equal(weights["0.weight"], model.state_dict()["0.weight"])


def test_a_model_that_cannot_be_exported_ends_with_its_line(folder, capsys):
    status = call("runs/lab", "--model", "exported_network:Choosing", "--argument", "width=8", "--inputs", "inputs.pt")
    said = capsys.readouterr().err
    assert status == 2
    assert said.startswith("NotExportable: exported_network.py:10: `if x.sum() > 0:` chooses by the values of a tensor")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--inputs", "inputs.pt", "--argument", "8"], "--argument 8 has no name"),
        (["--inputs", "inputs.pt", "--argument", "width=8", "--dynamic", "x"], "--dynamic x names no dimension"),
        (["--inputs", "exported_network:Net", "--argument", "width=8"], "UsageError"),
        (["--inputs", "absent.pt", "--argument", "width=8"], "absent.pt cannot be read"),
        (["--inputs", "inputs.pt", "--argument", "width=9"], "KeysDoNotMatch"),
    ],
)
def test_wrong_use_is_explained(folder, capsys, options, said):
    assert call("runs/lab", "--model", "exported_network:Net", *options) == 2
    assert said in capsys.readouterr().err


@pytest.mark.program
def test_a_run_exports_its_current_weights(tmp_path, capsys):
    with Run(out=tmp_path / "run", seed=1, max_epochs=1, device="cpu", progress=False) as run:
        loader = run.loader(data.tensors(torch.randn(12, 4), torch.randn(12, 1)), batch_size=5)
        model = run.model(nn.Sequential(nn.Linear(4, 2), nn.Dropout(), nn.Linear(2, 1)))
        model.train()
        before = torch.get_rng_state()
        found = run.export(model, loader)
        assert torch.equal(torch.get_rng_state(), before)
        assert model[1].training
    assert found.folder == tmp_path / "run" / "export" / "pt2"
    assert found.config["weights"] == {"name": "model", "step": 0}
    assert "equal to eager in" in capsys.readouterr().err


SCALAR = """
from torch import nn

def net():
    return nn.Sequential(nn.Linear(4, 4), nn.Dropout(), nn.Linear(4, 1))
"""


def train(out, *, epochs, resume=None):
    """Train for some epochs of 3 steps under supervision, with a failure; return the model, a loader and the run."""
    torch.manual_seed(0)
    run = Run(out=out, seed=1, max_epochs=epochs, progress=False, resume=resume, device="cpu")
    loader = run.loader(data.tensors(torch.randn(12, 4), torch.randn(12)), batch_size=4)
    model = run.model(nn.Sequential(nn.Linear(4, 4), nn.Dropout(), nn.Linear(4, 1)))
    run.optimizer(torch.optim.SGD(model.parameters(), lr=0.01))
    for epoch in run.epochs():
        for x, y in run.train(loader, model):
            run.step((model(x) - y).square().mean())  # (4, 1) and (4,)
        run.save(metric=epoch)
    return model, loader, run


@pytest.mark.program
def test_the_card_of_a_supervised_run_has_its_findings(tmp_path, capsys):
    with Session(Options()) as session:
        model, loader, run = train(tmp_path / "run", epochs=3)
        found = run.export(model, loader)
        assert "calls" in session.ledger_so_far()
        assert "eval" not in session.ledger_so_far()["calls"]  # the calls of the export are no part of the training
        run.close()
    text = (found.folder / "README.md").read_text()
    assert "1 failure found in the 9 steps before the export" in text
    assert "| broadcast-target |" in text
    assert "test_export.py:" in text
    assert "9 training, train mode" in text
    assert [finding.rule for finding in session.stop().shown()] == ["broadcast-target"]


@pytest.mark.program
def test_the_card_of_a_checkpoint_has_the_findings_of_its_training_also_after_a_resume(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "scalar_network.py").write_text(SCALAR)
    torch.save([torch.randn(6, 4)], tmp_path / "inputs.pt")
    given = ("--model", "scalar_network:net", "--inputs", "inputs.pt", "--to", "safetensors")
    with Session(Options()):
        train("runs/lab", epochs=2)[2].close()
    assert call("runs/lab/last", *given) == 0
    text = (tmp_path / "runs/lab/export/safetensors/README.md").read_text()
    assert "1 failure found in the 6 steps before the weights were saved" in text
    assert "| broadcast-target |" in text
    assert "6 training, train mode" in text

    train("runs/lab", epochs=3, resume="auto")[2].close()  # without supervision
    assert call("runs/lab/last", *given) == 0
    text = (tmp_path / "runs/lab/export/safetensors/README.md").read_text()
    assert "1 failure found in 6 of the 9 steps before the weights were saved" in text

    with Session(Options()):
        train("runs/lab", epochs=4, resume="auto")[2].close()
    assert call("runs/lab/last", *given) == 0
    text = (tmp_path / "runs/lab/export/safetensors/README.md").read_text()
    assert "1 failure found in 9 of the 12 steps before the weights were saved" in text
    assert "Part 1 of 2, 6 steps:" in text
    assert "Part 2 of 2, 3 steps:" in text


@pytest.mark.program
def test_a_run_exports_its_best_checkpoint(tmp_path, capsys):
    model, loader, run = train(tmp_path / "run", epochs=3)
    found = run.export(model, loader, best=True)
    assert found.config["weights"] == {
        "checkpoint": "step-000003", "name": "model", "step": 3, "epoch": 1, "metric": 0.0,
    }  # fmt: skip
    from safetensors.torch import load_file

    weights = load_file(tmp_path / "run/checkpoints/step-000003/model.safetensors")
    written = torch.export.load(found.file).state_dict
    assert all(torch.equal(written[name], value) for name, value in weights.items())
    assert not torch.equal(weights["0.weight"], model[0].weight)
    with pytest.raises(BadPart, match="is not a model of the run"):
        run.export(nn.Linear(4, 1), loader, best=True)
    run.close()


def test_a_run_without_a_metric_has_no_best_checkpoint(tmp_path):
    with Run(out=tmp_path / "run", seed=1, max_epochs=1, device="cpu", progress=False) as run:
        loader = run.loader(data.tensors(torch.randn(12, 4), torch.randn(12, 1)), batch_size=5)
        model = run.model(nn.Linear(4, 1))
        with pytest.raises(BadCheckpoint, match="has a metric"):
            run.export(model, loader, best=True)


@pytest.mark.program
def test_a_checkpoint_and_its_export_are_timed(folder, capsys):
    place, _, _ = folder
    given = ("--model", "exported_network:Net", "--argument", "width=8", "--inputs", "inputs.pt")
    assert call("runs/lab/best", *given, "--to", "pt2") == 0
    capsys.readouterr()
    measured = ("--budget", "5", "--only", "inference_mode,pt2", "--batch", "1", "--threads", "1", "--format", "json")
    for target, arguments in (("runs/lab/best", given), ("runs/lab/export/pt2", ("--inputs", "inputs.pt"))):
        with pytest.raises(SystemExit) as ended:
            main(["bench-inference", *arguments, *measured, target])
        assert ended.value.code == 0
        values = json.loads(capsys.readouterr().out)
        rows = {row["name"]: row for row in values["settings"][0]["rows"]}
        assert "pt2" in rows, target
        assert rows["pt2"]["status"] != "differs"
        assert rows[values["reference"]]["median_s"] > 0
    assert place.exists()
