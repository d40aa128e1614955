"""Skills for coding assistants: valid, about commands that exist, and never written over a changed file."""

import re
from pathlib import Path

import pytest
import yaml
from every import every

import truestep
from truestep.assistants.skills import FOLDERS, SOURCE, install, skills
from truestep.cli import COMMANDS
from truestep.cli.assisting.skills import skills as command
from truestep.errors import FileExists, UnwritableFolder, UsageError
from truestep.rules import all_rules

each_skill = every("skill", skills(), ids=lambda skill: skill.name)


def test_every_folder_is_a_skill():
    assert {skill.name for skill in skills()} == {path.name for path in SOURCE.iterdir()}
    assert len(skills()) == 5


@each_skill
def test_the_header_is_that_of_the_specification(skill):
    for text in (skill.text, skill.marked()):
        header = yaml.safe_load(text[4:].partition("\n---\n")[0])
        assert header["name"] == skill.name
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", skill.name)
        assert header["description"] == skill.description
        assert " Use " in skill.description
        assert len(skill.description) <= 1024
    assert all(isinstance(value, str) for value in header["metadata"].values())
    assert header["metadata"]["truestep"] == truestep.__version__


@each_skill
def test_commands_and_options_exist(skill):
    snapshots = Path(__file__).parents[1] / "house" / "help"
    lines = re.findall(r"truestep ([a-z-]+)([^`\n]*)", skill.text.partition("\n---\n")[2])
    named = [(name, rest) for name, rest in lines if name in COMMANDS or rest.startswith(" --")]
    assert named
    for name, rest in named:
        assert name in COMMANDS
        options = rest.partition(".py")[0] if name == "run" else rest
        page = (snapshots / f"{name}.txt").read_text(encoding="utf-8")
        for option in re.findall(r"--[a-z-]+", options):
            assert option in page


@each_skill
def test_rules_and_names_exist(skill):
    assert set(re.findall(r"(?:error|ignore)\[([a-z-]+)\]|--rule ([a-z-]+)", skill.text)) >= set()
    named = {
        id for pair in re.findall(r"(?:error|ignore)\[([a-z-]+)\]|--rule ([a-z-]+)", skill.text) for id in pair if id
    }
    assert named <= set(all_rules())
    assert set(re.findall(r"\b(?:ts|truestep)\.(\w+)", skill.text)) <= set(dir(truestep))
    called = re.findall(r"\brun\.(\w+)\(", skill.text)
    assert set(called) <= set(dir(truestep.Run))


def test_files_are_written_once_and_updated_later(tmp_path):
    written = install(tmp_path)
    assert {state for _, state in written} == {"written"}
    assert {state for _, state in install(tmp_path)} == {"unchanged"}
    path = written[0][0]
    older = path.read_text(encoding="utf-8")
    from truestep.assistants.skills import Skill, _changed

    path.write_text(Skill("x", "y", "---\nname: x\n---\nolder text\n").marked(), encoding="utf-8")
    assert not _changed(path)
    assert [state for _, state in install(tmp_path)] == ["updated", *["unchanged"] * 4]
    assert path.read_text(encoding="utf-8") == older


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text + "mine\n",
        lambda text: "no header",
        lambda text: text.replace("description: ", "description: My "),
    ],
)
def test_a_changed_file_stops_the_installation(tmp_path, change):
    path = install(tmp_path)[2][0]
    other = tmp_path / "read-a-finding" / "SKILL.md"
    other.unlink()
    changed = change(path.read_text(encoding="utf-8"))
    path.write_text(changed, encoding="utf-8")
    with pytest.raises(FileExists, match="was changed, or made by others") as raised:
        install(tmp_path)
    assert str(path) in str(raised.value)
    assert path.read_text(encoding="utf-8") == changed
    assert not other.exists()
    states = {path.parent.name: state for path, state in install(tmp_path, force=True)}
    assert states[path.parent.name] == "updated"
    assert states["read-a-finding"] == "written"


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UnwritableFolder, match="--to DIR"):
        install(tmp_path / "file")


@pytest.mark.parametrize("assistant", [None, *FOLDERS])
def test_the_command_writes_to_the_folder_of_the_assistant(tmp_path, monkeypatch, capsys, assistant):
    monkeypatch.chdir(tmp_path)
    command("install", assistant)
    folder = tmp_path / FOLDERS[assistant or "agents"]
    assert (folder / "supervise-training" / "SKILL.md").is_file()
    assert f"written   {FOLDERS[assistant or 'agents']}/read-a-finding/SKILL.md" in capsys.readouterr().out


def test_the_command_lists_and_refuses_what_does_not_fit(tmp_path, capsys):
    command("list")
    assert "verify-resume\n    Check that a killed" in capsys.readouterr().out
    with pytest.raises(UsageError, match="options of `truestep skills install`"):
        command("list", "claude")
    with pytest.raises(UsageError, match="leave out --for"):
        command("install", "claude", tmp_path)
    command("install", to=tmp_path / "here")
    assert len(list((tmp_path / "here").iterdir())) == 5
