import json
import re
import subprocess
import sys

import pytest
from rich.console import Console

from truestep.cli import explain
from truestep.errors import TorchMissing, UnknownRule, UsageError
from truestep.rules import _proof, all_rules
from truestep.rules._rule import HEADINGS

pytestmark = pytest.mark.cold

BAD = "import sys\n\nvalue = 1.0\nprint(f'result: {value + int(sys.argv[1])}')  # error: missing-zero-grad\n"
GOOD = "import sys\n\nvalue = 1.0\nvalue += 4\nprint(f'result: {value + int(sys.argv[1])}')\n"
STATED = """\
rule = "missing-zero-grad"
metric = "points"
better = "higher"
margin = {margin}
seeds = [0, 1]
harm = "it is lower"
"""


@pytest.fixture
def proof(tmp_path, monkeypatch):
    folder = tmp_path / "missing-zero-grad"
    folder.mkdir()
    (folder / "bad.py").write_text(BAD)
    (folder / "good.py").write_text(GOOD)
    (folder / "proof.toml").write_text(STATED.format(margin=2))
    monkeypatch.setattr(_proof, "find", lambda rule: folder)
    monkeypatch.setattr(_proof.importlib.util, "find_spec", lambda name: object())
    return folder


def truestep(*arguments):
    command = [sys.executable, "-c", "from truestep.cli import main; main()", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, encoding="utf-8")


@pytest.mark.program
def test_page_has_all_sections_and_no_colours_in_a_pipe():
    done = truestep("explain", "missing-zero-grad")
    assert done.returncode == 0
    assert [line for line in done.stdout.splitlines() if line in HEADINGS] == list(HEADINGS)
    assert "\x1b" not in done.stdout
    assert "\n    optimizer.step()\n" in done.stdout


@pytest.mark.parametrize("id", all_rules())
def test_every_page_can_be_shown(id, capsys):
    assert explain.explain([id]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(line == line.rstrip() for line in lines)
    assert all(len(line) <= 100 or "https://" in line or line.startswith("    ") for line in lines)


@pytest.mark.program
def test_unknown_rule_is_said_without_a_traceback():
    done = truestep("explain", "missing-zero-gard")
    assert done.returncode == 2
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert lines[0] == 'UnknownRule: no rule is called "missing-zero-gard"'
    assert lines[1].startswith("  nearest: missing-zero-grad")
    assert lines[2] == "  list them with `truestep rules`"


def shown(capsys, *words, **options):
    assert explain.explain(list(words), **options) == 0
    return capsys.readouterr().out


def test_a_symptom_has_its_causes_and_the_commands_that_tell_them_apart(capsys):
    lines = shown(capsys, "resume", "gives", "another", "loss").splitlines()
    assert lines[:2] == ["A resumed or loaded model gives another result", 'found by "resume gives another loss"']
    assert any(line.startswith("  state-not-loaded ") for line in lines)
    assert "  check  truestep verify-resume train.py" in lines
    assert lines[-1].startswith("  read   truestep explain ")
    assert all(len(line) <= 100 and line == line.rstrip() for line in lines)


def test_words_without_a_symptom_show_the_rules_that_speak_of_them(capsys):
    out = shown(capsys, "dropout")
    assert out.startswith('Rules with "dropout" on their page\n\n  functional-dropout-always-on ')


def test_a_message_of_torch_leads_to_the_post_mortem_and_its_page(capsys):
    out = shown(capsys, "Trying to backward through the graph a second time (or directly access saved tensors)")
    assert re.search(r"^\s+graph-freed ", out, re.MULTILINE)
    assert out.endswith("truestep explain graph-freed\n")
    page = shown(capsys, "graph-freed")
    assert page.startswith("post-mortem[graph-freed]\n")
    assert "Trying to backward through the graph a second time" in page


def test_json_has_every_cause_with_its_reason_and_check(capsys):
    causes = json.loads(shown(capsys, "loss is nan", format="json"))
    assert causes[0] == {
        "id": "nan-or-inf",
        "kind": "rule",
        "finds": "Training continues with a loss that is NaN or infinite.",
        "because": "The loss is NaN or infinite",
        "matched": "The loss is NaN or infinite",
        "check": ["truestep run train.py"],
    }
    assert {"id": "nan-in-backward", "kind": "post-mortem"}.items() <= causes[1].items()


def test_words_that_fit_nothing_say_what_to_write():
    with pytest.raises(UnknownRule) as raised:
        explain.explain(["qwertz", "zxcv"])
    assert raised.value.happened == 'no symptom and no page of a rule fits "qwertz zxcv"'
    assert "truestep run train.py" in raised.value.remedy


@pytest.mark.parametrize(("words", "options"), [([" "], {}), (["missing-zero-grad"], {"format": "json"})])
def test_uses_without_a_meaning_are_errors(words, options):
    with pytest.raises(UsageError):
        explain.explain(words, **options)


@pytest.mark.program
def test_pages_need_no_torch():
    code = (
        "import sys; sys.modules['torch'] = None\nfrom truestep.cli import main\nmain(['explain', 'missing-zero-grad'])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


def test_proof_shows_both_programs_the_table_and_the_margin(proof, capsys):
    assert explain.explain(["missing-zero-grad"], prove=True) == 0
    out = capsys.readouterr().out
    assert "> 4 | print(f'result: {value + int(sys.argv[1])}')\n" in out
    assert "> 4 | value += 4\n" in out
    assert "points, higher is better" in out
    assert [line.split() for line in out.splitlines() if line.startswith(("0 ", "1 ", "mean"))] == [
        ["0", "1", "5"],
        ["1", "2", "6"],
        ["mean", "1.5", "5.5"],
    ]
    assert "proved: the harm is 4, more than the margin of 2\n" in out
    assert "it is lower" in out


def test_proof_below_its_margin_is_no_proof(proof, capsys):
    (proof / "proof.toml").write_text(STATED.format(margin=4))
    assert explain.explain(["missing-zero-grad"], prove=True) == 1
    assert "not proved here: the harm is 4, no more than the margin of 4" in capsys.readouterr().out


def test_lower_can_be_better(proof):
    (proof / "proof.toml").write_text(STATED.format(margin=1).replace("higher", "lower"))
    assert _proof.load(proof).harm(bad=(3.0, 5.0), good=(1.0, 1.0)) == 3.0


@pytest.mark.parametrize("program", ["raise SystemExit(3)", "print('no number')", "print('result: much')", ""])
def test_program_without_a_result_is_an_error(proof, program):
    (proof / "good.py").write_text(program)
    with pytest.raises(UsageError, match=r"good\.py gave no result for seed 0"):
        explain.explain(["missing-zero-grad"], prove=True)


def test_rule_without_a_proof_says_so(monkeypatch):
    monkeypatch.setattr(_proof, "find", lambda rule: None)
    with pytest.raises(UsageError, match="no proof that can be run"):
        explain.explain(["missing-zero-grad"], prove=True)


def test_proof_without_torch_says_so(proof, monkeypatch):
    monkeypatch.setattr(_proof.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(TorchMissing):
        explain.explain(["missing-zero-grad"], prove=True)


def test_terminal_gets_a_status_line_and_colours(proof):
    with open("/dev/null", "w") as nowhere:
        console = Console(force_terminal=True, width=100, record=True, file=nowhere, highlight=False)
        assert explain._prove(all_rules()["missing-zero-grad"], proof, console) == 0
        assert "\x1b[" in console.export_text(styles=True)
