import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from truestep.rules import all_rules

pytestmark = pytest.mark.cold


def truestep(*arguments):
    command = [sys.executable, "-c", "from truestep.cli import main; main()", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, encoding="utf-8")


@pytest.mark.program
def test_every_rule_is_listed_with_what_it_finds():
    done = truestep("rules")
    assert done.returncode == 0
    for id, rule in all_rules().items():
        (line,) = [line for line in done.stdout.splitlines() if line.split(" ")[0] == id]
        assert rule.severity.value in line
    assert f"{len(all_rules())} rules" in done.stdout


@pytest.mark.program
def test_json_lists_the_catalogue():
    listed = json.loads(truestep("rules", "--format", "json").stdout)
    assert [rule["id"] for rule in listed] == list(all_rules())
    assert all(rule["finds"].endswith(".") and isinstance(rule["needs"], list) for rule in listed)


def test_unknown_format_is_a_usage_error():
    assert truestep("rules", "--format", "xml").returncode == 2


def test_list_of_commands_names_each_and_each_is_described():
    """Their own help is run, and compared, by tests/house/test_help.py."""
    from truestep.cli import COMMANDS

    listed = truestep("--help").stdout
    for name, command in COMMANDS.items():
        assert (command.load().__doc__ or "").strip(), name
        assert name in listed


def test_help_version_and_unknown_commands():
    assert truestep("--version").stdout.startswith("truestep ")
    assert truestep("--help").stdout.startswith("Usage: truestep ")
    wrong = truestep("explian")
    assert wrong.returncode == 2
    assert "explain" in wrong.stderr


def test_start_imports_neither_torch_nor_rich_nor_any_command():
    code = (
        "import sys; import truestep.cli\n"
        "assert not {'typer', 'rich', 'torch'} & set(sys.modules)\n"
        "try: truestep.cli.main(['--help'])\n"
        "except SystemExit: pass\n"
        "loaded = {'rich', 'torch', 'numpy', 'truestep.cli.explain', 'truestep.cli.run', 'truestep.rules'}\n"
        "assert not loaded & set(sys.modules), loaded & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_everything_after_the_script_belongs_to_it_and_nothing_heavy_is_imported(tmp_path):
    (tmp_path / "stand_in.py").write_text(
        "import sys\n"
        "import typer\n"
        "def run(script: str, arguments: list[str] = typer.Argument(None), steps: int = 0) -> int:\n"
        "    print(script, arguments, steps, sys.excepthook is sys.__excepthook__)\n"
        "    print(sorted({'rich', 'torch', 'numpy'} & set(sys.modules)))\n"
        "    frame = sys._getframe()\n"
        "    names = set()\n"
        "    while frame: names.add(frame.f_globals['__name__']); frame = frame.f_back\n"
        "    print(any(name.startswith(('typer', 'click')) for name in names))\n"
        "    return 7\n",
        encoding="utf-8",
    )
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import dataclasses, truestep.cli as cli\n"
        "cli.COMMANDS['run'] = dataclasses.replace(cli.COMMANDS['run'], target='stand_in:run')\n"
        "cli.main(['run', '--steps', '3', 'train.py', '--steps', '5', '-x', '--', '--help'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["train.py ['--steps', '5', '-x', '--', '--help'] 3 True", "[]", "False"]
    assert done.returncode == 7


def test_every_option_of_run_is_documented_and_every_documented_one_is_there():
    page = (Path(__file__).parents[2] / "docs" / "reference" / "run.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"^\| `(-[-\w]+)", page, re.MULTILINE))
    offered = set(re.findall(r"^  (-[-\w]+)", truestep("run", "--help").stdout, re.MULTILINE))
    assert documented == offered


def test_every_key_of_the_configuration_is_documented():
    from truestep.config import _READERS

    page = (Path(__file__).parents[2] / "docs" / "reference" / "configuration.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `([-\w]+)`", page, re.MULTILINE)) == set(_READERS)
