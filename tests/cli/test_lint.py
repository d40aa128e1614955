"""`truestep lint`: exit codes, options, formats, standard input, cache, baseline, configuration, record of a run."""

import io
import json
import subprocess
import sys

import jsonschema
import pytest

from truestep import source
from truestep.cli import main
from truestep.lint.cache import FOLDER

BROKEN = """\
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    (model(x) - y).square().mean().backward()
    optimizer.step()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
"""
CLEAN = BROKEN.replace("    nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n", "")
TEXT = """\
error[clip-after-step]: the gradients are clipped after the step that uses them
  --> train.py:10:5
10 |     nn.utils.clip_grad_norm_(model.parameters(), 1.0)
   |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ has no effect
 9 |     optimizer.step()
   |     ---------------- updates with gradients that are not clipped
   = seen: in the syntax; confidence high
   = help: move the clip between the backward pass and `optimizer.step()`
   = more: truestep explain clip-after-step

1 failure found in 1 file
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(source, "_overlays", {})
    (tmp_path / "train.py").write_text(BROKEN, encoding="utf-8")
    return tmp_path


def lint(*arguments):
    """Run the command and return its exit code."""
    with pytest.raises(SystemExit) as ended:
        main(["lint", *arguments])
    return ended.value.code


def printed(capsys, *arguments):
    code = lint(*arguments)
    return code, capsys.readouterr().out


def test_finding_is_shown_with_its_lines(project, capsys):
    assert printed(capsys) == (1, TEXT)


def test_clean_files_exit_with_zero(project, capsys):
    (project / "train.py").write_text(CLEAN, encoding="utf-8")
    assert printed(capsys) == (0, "no failure found in 1 file\n")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--exit-zero"], 0),
        (["--ignore", "clip-after-step"], 0),
        (["--select", "missing-zero-grad,graph-cut"], 0),
        (["--select", "clip-after-step"], 1),
        (["--exclude", "train.py"], 0),
        (["--confidence", "high"], 1),
        (["--select", "no-such-rule"], 2),
        (["missing.py"], 2),
        (["--baseline", "missing.json"], 2),
    ],
)
def test_exit_code(project, arguments, code):
    assert lint(*arguments) == code


def test_file_that_cannot_be_checked_fails_unless_asked_not_to(project, capsys):
    (project / "train.py").write_text("import torch\ndef f(:", encoding="utf-8")
    code, text = printed(capsys)
    assert code == 1
    assert text.splitlines()[0] == "no failure found in 1 file, 1 file not checked"
    assert "note: train.py:2: syntax error: " in text
    assert lint("--exit-zero") == 0


def test_internal_error_exits_with_two(project, capsys, monkeypatch):
    from truestep.rules import all_rules

    monkeypatch.setattr(all_rules()["graph-cut"], "inspect", classmethod(lambda cls, program: 1 / 0))
    code, text = printed(capsys, "--no-cache")
    assert code == 2
    assert "internal error of the rule graph-cut in train.py: ZeroDivisionError" in text


def test_json_has_all_facts(project, capsys):
    code, text = printed(capsys, "--format", "json")
    document = json.loads(text)
    assert (code, document["schema"], document["files"]) == (1, "truestep.lint/1", 1)
    (finding,) = document["findings"]
    assert finding["rule"] == "clip-after-step"
    assert finding["primary"]["site"]["line"] == 10
    assert finding["related"][0]["site"]["line"] == 9
    assert document["counts"]["failures"] == 1


def test_json_follows_its_schema(project, capsys):
    from pathlib import Path

    import truestep.lint

    schema = json.loads((Path(truestep.lint.__file__).parent / "lint.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(json.loads(printed(capsys, "--format", "json")[1]), schema)


def test_sarif_has_a_result_with_its_rule(project, capsys):
    (run,) = json.loads(printed(capsys, "--format", "sarif")[1])["runs"]
    (result,) = run["results"]
    assert result["ruleId"] == "clip-after-step"
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 10
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["clip-after-step"]


def test_github_annotates_the_line(project, capsys):
    text = printed(capsys, "--format", "github")[1]
    assert text.startswith(
        "::error file=train.py,line=10,endLine=10,col=5,endColumn=54,title=truestep%3A clip-after-step::"
    )


def test_output_goes_to_a_file(project, capsys):
    assert printed(capsys, "--output", "out/findings.txt") == (1, "")
    assert (project / "out" / "findings.txt").read_text(encoding="utf-8").endswith("1 failure found in 1 file\n")


def test_statistics_count_findings_by_rule(project, capsys):
    (project / "other.py").write_text(BROKEN + BROKEN, encoding="utf-8")
    text = printed(capsys, "--statistics")[1]
    assert text == "3  clip-after-step  in 2 files\n3 failures found in 2 files\n"


def test_standard_input_has_a_name(project, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"# first\n" + BROKEN.encode()), encoding="utf-8"))
    code, text = printed(capsys, "-", "--stdin-filename", "train.py")
    assert code == 1
    assert "--> train.py:11:5\n11 |     nn.utils.clip_grad_norm_" in text, "the lines are those of standard input"


@pytest.mark.parametrize(
    "comment", ["# truestep: ignore[clip-after-step] logged", "# truestep: ignore-file[clip-after-step]"]
)
def test_comment_allows_a_finding(project, capsys, comment):
    (project / "train.py").write_text(BROKEN.rstrip() + "  " + comment + "\n", encoding="utf-8")
    assert printed(capsys) == (0, "no failure found in 1 file, 1 suppressed\n")


def test_comment_with_an_unknown_rule_is_noted(project, capsys):
    (project / "train.py").write_text(CLEAN + "# truestep: ignore[clip-after-steps]\n", encoding="utf-8")
    code, text = printed(capsys)
    assert code == 0
    assert 'note: train.py:10: no rule is called "clip-after-steps" (nearest: clip-after-step)' in " ".join(
        text.split()
    )


def test_configuration_excludes_and_ignores(project, capsys):
    (project / "old").mkdir()
    (project / "old" / "a.py").write_text(BROKEN, encoding="utf-8")
    (project / "scripts").mkdir()
    (project / "scripts" / "b.py").write_text(BROKEN, encoding="utf-8")
    (project / "truestep.toml").write_text(
        'exclude = ["old/"]\n[per-file-ignores]\n"scripts/*.py" = ["clip-after-step"]\n', encoding="utf-8"
    )
    code, text = printed(capsys, "--format", "json")
    document = json.loads(text)
    assert code == 1
    assert [(f["primary"]["site"]["path"], f["suppressed"]) for f in document["findings"]] == [
        ("scripts/b.py", True),
        ("train.py", False),
    ]


@pytest.mark.parametrize(
    "line", ['exclude = "old"', "exclude = [1]", "per-file-ignores = []", "[per-file-ignores]\na = 1"]
)
def test_configuration_is_checked(project, line):
    (project / "truestep.toml").write_text(line, encoding="utf-8")
    assert lint() == 2


def test_baseline_leaves_out_old_findings(project, capsys):
    assert lint("--write-baseline", "base.json") == 0
    assert printed(capsys, "--baseline", "base.json") == (0, "no failure found in 1 file, 1 in the baseline\n")
    (project / "train.py").write_text("# moved\n" + BROKEN, encoding="utf-8")
    assert lint("--baseline", "base.json") == 0
    (project / "train.py").write_text(BROKEN + BROKEN, encoding="utf-8")
    code, text = printed(capsys, "--baseline", "base.json")
    assert code == 1
    assert text.endswith("1 failure found in 1 file, 1 in the baseline\n")


@pytest.mark.parametrize("text", ["", "{}", '{"format": "other", "findings": []}'])
def test_baseline_is_checked(project, text):
    (project / "base.json").write_text(text, encoding="utf-8")
    assert lint("--baseline", "base.json") == 2


def test_cache_gives_equal_results_and_sees_changes(project, capsys):
    first = printed(capsys)
    assert list((project / FOLDER).glob("lint-*.json"))
    assert (project / FOLDER / ".gitignore").read_text(encoding="utf-8") == "*\n"
    assert printed(capsys) == first
    (project / "train.py").write_text(CLEAN, encoding="utf-8")
    assert printed(capsys)[0] == 0


def test_cache_saves_the_work(project, monkeypatch):
    lint()
    from truestep.lint import checking

    monkeypatch.setattr(checking, "inspect", None)  # would raise
    assert lint() == 1


@pytest.mark.parametrize("text", ["", "[]", '{"a": 1}'])
def test_damaged_cache_is_ignored(project, text):
    lint()
    (file,) = (project / FOLDER).glob("lint-*.json")
    file.write_text(text, encoding="utf-8")
    assert lint() == 1


def test_no_cache_writes_nothing(project):
    lint("--no-cache")
    assert not (project / FOLDER).exists()


def record(project, *lines):
    """Write the record of a run of train.py."""
    from truestep.supervision.record import FORMAT

    started = {"script": str(project / "train.py"), "torch": "2.13.0"}
    (project / "record").mkdir()
    texts = [
        {"format": FORMAT, "started": started},
        *lines,
        {"ended": "finished", "truncated": False, "internal_errors": []},
    ]
    (project / "record" / "rank-0.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in texts), encoding="utf-8")


def test_run_without_the_events_changes_nothing(project, capsys):
    record(project)
    assert printed(capsys, "--record", "record") == (1, TEXT)


def test_missing_record_is_an_error(project):
    assert lint("--record", "record") == 2


@pytest.mark.program
@pytest.mark.cold
def test_command_needs_no_torch(project):
    code = "import sys; sys.modules['torch'] = None; from truestep.cli import main; main(['lint', '--no-cache'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, encoding="utf-8")
    assert (done.returncode, done.stdout, done.stderr) == (1, TEXT, "")
