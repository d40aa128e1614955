"""Settings of a program as flags, files and variables."""

import json
import subprocess
import sys
import typing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest

import truestep as ts
from truestep.errors import BadSettings, PackageMissing
from truestep.loop.settings import names


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    """The place of the data of these tests, if it is in a variable, is one of a setting too."""
    monkeypatch.delenv("TRUESTEP_DATA", raising=False)


@dataclass
class Layer:
    width: int = 8
    act: Literal["relu", "gelu"] = "relu"


@dataclass
class Lab(ts.Settings):
    """Train the lab."""

    lr: float = 1e-3
    """Learning rate."""
    data: Path = Path("data")
    widths: tuple[int, ...] = (64, 32)
    optimizer: Literal["sgd", "adam"] = "adam"
    flip: bool = True
    note: str | None = None
    layer: Layer = field(default_factory=Layer)


@dataclass
class Needs(ts.Settings):
    samples: int


def read(*args, kind=Lab, **defaults):
    return kind.from_flags(args=args, **defaults)


def refused(capsys, *args, **defaults):
    with pytest.raises(SystemExit) as ended:
        read(*args, **defaults)
    assert ended.value.code == 2
    return capsys.readouterr().err


def test_without_flags_the_settings_are_those_of_the_program():
    assert read() == Lab()
    assert read(max_epochs=3, widths=(4,)) == Lab(max_epochs=3, widths=(4,))


def test_every_field_is_a_flag_with_its_type():
    said = read(
        "--lr", "3e-4", "--widths", "4", "5", "--no-flip", "--optimizer", "sgd", "--max-epochs", "2", "--note", "a b"
    )
    assert said == Lab(lr=3e-4, widths=(4, 5), flip=False, optimizer="sgd", max_epochs=2, note="a b")
    assert type(said) is Lab
    assert read("--layer.act", "gelu").layer == Layer(act="gelu")
    assert read("--max_epochs", "2").max_epochs == 2


def test_flags_are_those_of_the_process_by_default(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["train.py", "--seed", "9"])
    assert Lab.from_flags().seed == 9


def test_a_field_without_default_must_be_given(capsys):
    assert read("--samples", "3", kind=Needs).samples == 3
    assert read(kind=Needs, samples=4).samples == 4
    assert "--samples" in refused(capsys, kind=Needs)


@pytest.mark.parametrize(
    ("flag", "name", "value"),
    [
        ("--max-grad-norm=2", "clip_norm", 2.0),
        ("--gradient_accumulation_steps=4", "accumulate", 4),
        ("--accumulate-grad-batches=4", "accumulate", 4),
        ("--resume_from_checkpoint=auto", "resume", "auto"),
    ],
)
def test_names_of_other_trainers_are_flags(flag, name, value):
    assert getattr(read(flag, "--out", "runs/x"), name) == value


def test_every_other_name_stands_for_a_setting():
    fields = typing.get_type_hints(ts.Settings)
    assert set(names.ALIASES.values()) <= set(fields)
    assert not set(names.ALIASES) & set(fields)


def test_a_name_of_another_trainer_that_is_a_setting_of_the_program_stays_that():
    @dataclass
    class Own(ts.Settings):
        logging_steps: int = 1

    assert read("--logging-steps", "7", kind=Own) == Own(logging_steps=7)


def test_later_places_win(tmp_path, monkeypatch):
    file = tmp_path / "lab.toml"
    file.write_text('lr = 1\nseed = 1\nmax-grad-norm = 1\nnote = "file"\n')
    monkeypatch.setenv("TRUESTEP_SEED", "2")
    monkeypatch.setenv("TRUESTEP_NOTE", "variable")
    said = read("--config", str(file), "--note", "flag", lr=7, keep_last=5)
    assert (said.lr, said.clip_norm, said.seed, said.note, said.keep_last) == (1.0, 1.0, 2, "flag", 5)


def test_variables_are_read_as_their_types(monkeypatch):
    for name, value in {"WIDTHS": "1, 2 3", "FLIP": "off", "CLIP_NORM": "None", "DATA": "a folder"}.items():
        monkeypatch.setenv(f"TRUESTEP_{name}", value)
    said = read(clip_norm=1.0)
    assert (said.widths, said.flip, said.clip_norm, said.data) == ((1, 2, 3), False, None, Path("a folder"))


def test_a_file_holds_lists_switches_and_parts(tmp_path):
    file = tmp_path / "lab.toml"
    file.write_text('widths = [1, 2]\nflip = false\nprecision = "bf16"\n[layer]\nact = "gelu"\n')
    said = read(f"--config={file}")
    assert said == Lab(widths=(1, 2), flip=False, precision="bf16", layer=Layer(act="gelu"))


def test_the_settings_of_a_run_can_be_used_again(tmp_path):
    own = Lab(out=tmp_path / "run", max_steps=1, note="x", widths=(3,), layer=Layer(width=2), device="cpu")
    with ts.Run(own):
        pass
    saved = tmp_path / "run" / "settings.json"
    assert json.loads(saved.read_text())["note"] == "x"
    again = read("--config", str(saved))
    assert again == own.changed(out=str(tmp_path / "run"))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("lrr = 1", ['"lrr" is not a setting', 'write "lr" in']),
        ('optimizer = "adamw"', ['"optimizer" in', 'must be "sgd" or "adam", got \'adamw\'']),
        ("seed = 1.5", ["must be int, got 1.5"]),
        ("[layer]\nwidht = 3", ['"widht" is not a field of "layer" in', "width, act"]),
        ("lr = = 2", ["is not valid TOML", "line 1"]),
        ("seed = [1, 2]", ["must be int, got [1, 2]"]),
    ],
)
def test_a_wrong_file_is_refused_with_its_name(tmp_path, capsys, text, told):
    file = tmp_path / "lab.toml"
    file.write_text(text)
    said = refused(capsys, "--config", str(file))
    assert all(part in said for part in [*told, "lab.toml"]), said
    assert "Traceback" not in said


def test_a_missing_file_is_refused(capsys):
    assert "No such file" in refused(capsys, "--config", "nowhere.toml")


def test_a_json_file_that_is_none_is_refused(tmp_path, capsys):
    (tmp_path / "a.json").write_text("[1]")
    assert "must hold a table of settings, got a list" in refused(capsys, "--config", str(tmp_path / "a.json"))
    (tmp_path / "a.json").write_text("{")
    assert "not valid JSON" in refused(capsys, "--config", str(tmp_path / "a.json"))


def test_a_wrong_flag_names_the_nearest(capsys):
    assert "--lr" in refused(capsys, "--lrr", "1")
    assert "accumulate must be a positive integer, got 0" in refused(capsys, "--accumulate", "0")


def test_a_wrong_variable_is_named(monkeypatch, capsys):
    monkeypatch.setenv("TRUESTEP_LR", "fast")
    assert "TRUESTEP_LR" in refused(capsys)


def test_what_the_program_gets_wrong_is_its_error():
    with pytest.raises(BadSettings, match="write max_epochs="):
        read(max_epoch=3)
    with pytest.raises(BadSettings, match="write clip_norm="):
        ts.Run(max_grad_norm=1.0)


def test_help_says_what_the_program_is_for_and_every_field(tmp_path):
    program = tmp_path / "train.py"
    program.write_text(
        '"""Teach it to read."""\n'
        "from dataclasses import dataclass\n"
        "import truestep as ts\n"
        "@dataclass\n"
        "class Reader(ts.Settings):\n"
        "    lr: float = 0.5\n"
        '    """How fast."""\n'
        'Reader.from_flags(out="runs/reader")\n'
    )
    done = subprocess.run([sys.executable, program, "--help"], capture_output=True, text=True, check=True)
    for part in (
        "Teach it to read.",
        "--lr FLOAT",
        "How fast. (default: 0.5)",
        "runs/reader",
        "--config",
        "--no-watch",
    ):
        assert part in done.stdout, done.stdout


def test_without_tyro_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "tyro", None)
    with pytest.raises(PackageMissing, match=r"truestep\[settings\]"):
        read()


def test_a_class_without_decorator_is_refused():
    class Forgotten(ts.Settings):
        lr: float = 1.0

    with pytest.raises(BadSettings, match="write @dataclass above class Forgotten"):
        Forgotten.from_flags(args=[])
    with pytest.raises(BadSettings, match="not a dataclass"):
        ts.Run(Forgotten())


def test_the_settings_of_a_run_are_fixed():
    own = Lab(max_steps=3, device="cpu")
    run = ts.Run(own)
    own.lr = 2.0
    assert run.settings.lr == 1e-3
    with pytest.raises(BadSettings, match="cannot change lr: settings are frozen"):
        run.settings.lr = 3.0
    assert run.settings.changed(lr=3.0).lr == 3.0


def test_a_field_called_config_is_the_programs_own():
    @dataclass
    class Own(ts.Settings):
        config: str = "small"

    assert read("--config", "large", kind=Own).config == "large"
