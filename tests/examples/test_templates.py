"""The programs that `truestep new` writes, on real data: each runs, learns, and is quiet under supervision."""

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from programs import DATA, supervise

from truestep import Trained, templates
from truestep.cli import main

FEW = {
    "digits": ["--max-epochs", "3"],
    "images": ["--max-steps", "60"],
    "table": ["--max-epochs", "2"],
    "text": ["--max-epochs", "2"],
    "tokens": ["--max-steps", "60", "--width", "32", "--layers", "1", "--block", "32"],
    "spiral": ["--max-epochs", "10"],
}
NEEDS = {"images": "fashion-mnist", "table": "housing", "text": "rt-polarity", "tokens": "tinyshakespeare"}
LONGEST = 123
SLOW = {"images"}


@pytest.fixture(params=[pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in templates.ORDER])
def name(request: pytest.FixtureRequest) -> str:
    folder = NEEDS.get(request.param)
    if folder and not (DATA / folder).is_dir():
        pytest.skip(f"{DATA} has no {folder}")
    return request.param


DISTRICT = (
    "longitude,latitude,housing_median_age,total_rooms,total_bedrooms,population,households,median_income,"
    "ocean_proximity\n-122.23,37.88,41.0,880.0,129.0,322.0,126.0,8.3252,NEAR BAY\n"
)
NEW = {
    "digits": ("csv", ",".join(["0", "8", "16", "8"] * 16), r".*new\.csv: \d \d+\.\d%, "),
    "images": ("png", "", r".*new\.png: [a-zA-Z-]+ \d+\.\d%, "),
    "table": ("csv", DISTRICT, r".*new\.csv: [1-9][\d,.]+\n$"),
    "text": ("txt", "a fine film\nfar too long\n", r".*line 1: (good|bad) .*%\n.*line 2: (good|bad) .*%\n$"),
    "tokens": ("txt", "ROMEO:\n", r"(?s)ROMEO:.{300}\n$"),
    "spiral": ("csv", "0.1,0.2\n", r".*new\.csv: (first|second|third) arm \d"),
}
"""Kind and content of a new file, and the answer to it."""


def losses(out: Path) -> list[float]:
    """Return the losses of the steps, in order."""
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    return [line["loss"] for line in lines if "loss" in line]


FALLS_TO = {"digits": 0.35, "images": 0.75, "table": 0.25, "text": 0.68, "tokens": 3.1, "spiral": 0.9}
"""Limit of the mean of the last losses, with seed 0; at first it is ln 10, ln 10, 1.7, ln 2, ln 65, ln 3."""


def predicts(
    name: str, out: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Check that `--predict` prepares new files with the saved preprocessing, without training and without its data."""
    kind, content, expected = NEW[name]
    path = folder / f"new.{kind}"
    if kind == "png":
        Image.new("L", (28, 28)).save(path)
    else:
        path.write_text(content, encoding="utf-8")
    before = sorted(entry.name for entry in out.rglob("*"))
    monkeypatch.setattr(sys, "argv", ["train.py", "--predict", str(path), "--out", str(out), "--data", str(folder)])
    if name not in NEEDS:
        del sys.argv[-2:]
    capsys.readouterr()
    with pytest.raises(SystemExit):
        runpy.run_path(str(templates.FOLDER / f"{name}.py"), run_name="__main__")
    said = capsys.readouterr().out
    assert re.match(expected, said), said
    assert sorted(entry.name for entry in out.rglob("*")) == before


@pytest.mark.program
def test_template_is_quiet_under_supervision_and_learns(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    program = templates.FOLDER / f"{name}.py"
    run = (
        supervise(program, *FEW[name], "--data", str(DATA), "--out", str(out))
        if name in NEEDS
        else supervise(program, *FEW[name], "--out", str(out))
    )
    assert run.how == "finished", str(run)
    assert run.findings == [], str(run)
    assert run.errors == [], str(run)
    assert run.steps >= 60, str(run)
    last = losses(out)[-10:]
    assert sum(last) / len(last) < FALLS_TO[name]
    predicts(name, out, tmp_path, monkeypatch, capsys)
    if name == "spiral":
        with Image.open(out / "spiral.gif") as picture:
            assert (picture.n_frames, picture.size) == (5, (320, 320))


FACTORIES = {
    "digits": lambda *_: ("net", {}),
    "images": lambda *_: ("Net", {}),
    "table": lambda config, settings: (
        "net",
        {"features": config["inputs"][0]["shape"][1], "width": settings["width"]},
    ),
    "text": lambda config, _: ("Bag", {"words": len(config["preprocessing"]["vocab"])}),
    "tokens": lambda config, settings: (
        "Writer",
        {"characters": len(config["preprocessing"]["classes"])}
        | {name: settings[name] for name in ("block", "width", "layers")},
    ),
    "spiral": lambda _, settings: ("net", {"width": settings["width"]}),
}
"""Factory of each template with its arguments, for `config.json` and the settings of a run."""


def inputs_of(described: list[dict[str, Any]]) -> list[torch.Tensor]:
    """Return inputs with the names, types and shapes of an export, five samples of length 8."""
    sizes = {"batch": 5, "length": 8}
    shapes = [[sizes.get(size, size) for size in each["shape"]] for each in described]
    kinds = [getattr(torch, each["dtype"]) for each in described]
    return [
        torch.randn(shape) if kind.is_floating_point else torch.full(shape, 8 if len(shape) == 1 else 2, dtype=kind)
        for shape, kind in zip(shapes, kinds, strict=True)
    ]


@pytest.mark.program
def test_template_is_exported_at_the_end_and_by_the_command(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(SystemExit):
        main(["new", name, f"written_{name}.py"])
    assert f"python written_{name}.py --resume auto --export onnx" in Path(f"written_{name}.py").read_text("utf-8")
    data = ["--data", str(DATA)] if name in NEEDS else []
    command = [sys.executable, f"written_{name}.py", *FEW[name], *data, "--out", "run"]
    done = subprocess.run([*command, "--export", "onnx"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "model.onnx: equal to eager in " in done.stderr
    config = json.loads(Path("run/export/onnx/config.json").read_text(encoding="utf-8"))
    assert config["weights"]["checkpoint"].startswith("step-")  # the best one
    factory, arguments = FACTORIES[name](config, Trained("run").settings)
    torch.save(tuple(inputs_of(config["inputs"])), "inputs.pt")
    given = [part for key, value in arguments.items() for part in ("--argument", f"{key}={value}")]
    given += ["--inputs", "inputs.pt"]
    for to in ("pt2", "safetensors"):
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(["export", "run/best", "--model", f"written_{name}:{factory}", *given, "--to", to])
        said = capsys.readouterr()
        assert ended.value.code == 0, said.err
        assert "tolerance 1e-04: equal" in said.out
    sys.modules.pop(f"written_{name}")


@pytest.mark.program
def test_a_finished_template_is_exported_without_further_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRUESTEP_WATCH", "1")
    monkeypatch.chdir(tmp_path)
    command = [sys.executable, str(templates.FOLDER / "digits.py"), "--max-epochs", "2", "--no-progress"]
    subprocess.run(command, capture_output=True, check=True)
    logged = Path("runs/digits/metrics.jsonl").read_bytes()
    done = subprocess.run(
        [*command, "--resume", "auto", "--export", "pt2"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "with changes" not in done.stderr
    assert done.stdout == ""
    assert Path("runs/digits/metrics.jsonl").read_bytes() == logged
    card = Path("runs/digits/export/pt2/README.md").read_text(encoding="utf-8")
    assert re.search(r"No failure found in the \d\d steps before the weights were saved", card)
    assert "| export |" not in card


@pytest.mark.parametrize("name", templates.ORDER)
def test_template_is_short_enough_to_be_read_aloud(name: str) -> None:
    text = templates.read(name)
    assert len(text.splitlines()) <= LONGEST
    assert "python train.py" in text
    assert len(templates.title(name)) <= 120


def test_every_template_is_offered() -> None:
    assert {path.stem for path in templates.FOLDER.glob("[a-z]*.py")} == set(templates.ORDER)


@pytest.mark.program
def test_a_new_program_trains_and_is_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUESTEP_WATCH", "1")
    written = subprocess.run(
        [sys.executable, "-m", "truestep", "new", "digits"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert written.stdout.startswith("wrote train.py: Classify handwritten digits\n")
    command = [sys.executable, "train.py", "--max-epochs", "1"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "epoch 1: held-out accuracy" in done.stdout
    assert "no failure found" in done.stderr
    assert (tmp_path / "runs/digits/checkpoints").is_dir()
