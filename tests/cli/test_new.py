"""`truestep new`: the files that it writes, and those that it keeps."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from truestep import templates
from truestep.cli import main

pytestmark = pytest.mark.cold


def new(*arguments):
    with pytest.raises(SystemExit) as ended:
        main(["new", *arguments])
    return ended.value.code


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_it_writes_the_template_as_it_is(folder, capsys):
    assert new("tokens") == 0
    assert (folder / "train.py").read_text() == templates.read("tokens")
    assert "python train.py --help" in capsys.readouterr().out


def test_it_writes_into_the_given_folder(folder):
    (folder / "there").mkdir()
    assert new("digits", "lab/mine.py") == new("digits", "there") == 0
    assert "python mine.py --max-epochs" in (folder / "lab/mine.py").read_text()
    assert (folder / "there/train.py").exists()


def test_a_file_that_is_there_is_left_alone(folder, capsys):
    (folder / "train.py").write_text("mine")
    assert new("digits") == 2
    assert (folder / "train.py").read_text() == "mine"
    assert "truestep new digits train_digits.py" in capsys.readouterr().err


def test_an_unknown_name_gives_the_nearest(folder, capsys):
    assert new("digit") == 2
    said = capsys.readouterr().err
    assert "write truestep new digits" in said
    assert not list(folder.iterdir())


def test_a_place_that_cannot_be_written_is_named(folder, capsys):
    (folder / "file").write_text("")
    assert new("digits", "file/train.py") == 2
    assert "cannot be written" in capsys.readouterr().err


def test_without_a_name_it_lists_them(capsys):
    assert new() == 0
    said = capsys.readouterr().out
    assert [line.split()[0] for line in said.splitlines() if line and not line.startswith((" ", "write"))] == list(
        templates.ORDER
    )


@pytest.mark.parametrize("name", templates.ORDER)
def test_what_a_template_needs_is_in_the_extra(name):
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    held = " ".join([*extras["new"], *extras["torch"], *extras["settings"], *extras["data"]])
    assert "truestep[torch,settings,data]" in held
    packages = {"sklearn": "scikit-learn", "PIL": "pillow"}
    assert not [module for module in templates.modules(name) if packages.get(module, module) not in held]
    assert {"torch", "tyro"} <= set(templates.modules(name))


WITHOUT = """
import importlib.machinery as m
find = m.PathFinder.find_spec.__func__
gone = {"tyro", "sklearn", "polars", "PIL"}
def find_spec(cls, name, path=None, target=None):
    return None if name.partition(".")[0] in gone else find(cls, name, path, target)
m.PathFinder.find_spec = classmethod(find_spec)
from truestep import templates
from truestep.cli import main
for name in templates.ORDER:
    try:
        main(["new", name, name + ".py"])
    except SystemExit as done:
        assert not done.code
"""


def test_it_says_what_to_install(folder, capsys):
    done = subprocess.run([sys.executable, "-c", WITHOUT], check=True, cwd=folder, capture_output=True, text=True)
    said = [line.split("  ")[1] for line in done.stdout.splitlines() if "pip install" in line]
    assert said == [
        "pip install scikit-learn tyro",
        "pip install tyro",
        "pip install tyro polars",
        "pip install tyro",
        "pip install tyro",
        "pip install pillow tyro",
    ]
    assert new("digits") == 0
    assert "pip install" not in capsys.readouterr().out


def test_it_needs_no_torch(folder):
    code = "import sys; sys.modules['torch'] = None; from truestep.cli import main; main(['new', 'text'])"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=folder, capture_output=True)
    assert (folder / "train.py").exists()
