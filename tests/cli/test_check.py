"""`truestep check`: the answers of the checks on copies, and the end of the script after its first evaluation."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from truestep.rules import all_rules, battery

TRAIN = """
    import sys
    import torch

    IGNORED = "ignored" in sys.argv

    class Classifier(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = torch.nn.Embedding(30, 8)
            self.head = torch.nn.Linear(8, 2)

        def forward(self, tokens, padding_mask):
            if IGNORED:
                return self.head(self.embed(tokens).mean(1))
            kept = (~padding_mask).float().unsqueeze(2)
            return self.head((self.embed(tokens) * kept).sum(1) / kept.sum(1))

    def samples(count):
        lengths = torch.randint(4, 10, (count,))
        padding = torch.arange(10) >= lengths.unsqueeze(1)
        tokens = torch.randint(1, 30, (count, 10)).masked_fill(padding, 0)
        labels = (((tokens > 15) & ~padding).sum(1) * 2 > lengths).long()
        return torch.utils.data.TensorDataset(tokens, padding, labels)

    torch.manual_seed(0)
    torch.set_num_threads(1)
    training = torch.utils.data.DataLoader(samples(256), batch_size=16, shuffle=True)
    validation = torch.utils.data.DataLoader(samples(64), batch_size=16)
    model = Classifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(6 if "long" in sys.argv else 2):
        model.train()
        for tokens, padding, labels in training:
            loss = torch.nn.functional.cross_entropy(model(tokens, padding), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if "blind" not in sys.argv:
            model.eval()
            with torch.no_grad():
                hits = sum((model(t, p).argmax(1) == y).sum().item() for t, p, y in validation)
            print("accuracy", hits / 64)
    if "crash" in sys.argv:
        raise SystemExit(7)
    """


def check(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "train.py").write_text(textwrap.dedent(TRAIN))
    command = [sys.executable, "-m", "truestep", "check", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def answered(folder: Path, *arguments: str) -> tuple[int, dict[str, Any], dict[str, dict[str, Any]]]:
    done = check(folder, "--format", "json", "--output", "answers.json", "train.py", *arguments)
    document = json.loads((folder / "answers.json").read_text())
    return done.returncode, document, {row["rule"]: row for row in document["checks"]}


def test_battery_is_the_rules_that_watch_a_check_on_a_copy() -> None:
    modules = ("truestep.events._active", "truestep.events._rows")
    watching = {
        id
        for id, rule in all_rules().items()
        if any(kind.__module__ in modules and kind.__name__ != "CheckSkipped" for kind in rule.watches)
    }
    assert {rule.id for rule in battery()} == watching


def test_ignored_input_fails(tmp_path: Path) -> None:
    done = check(tmp_path, "train.py", "ignored")
    line = 1 + next(n for n, text in enumerate(TRAIN.splitlines()) if "loss = " in text)
    assert done.returncode == 1
    assert "1 failed" in done.stderr
    assert f"train.py:{line}" in done.stderr
    assert "[input-without-influence]: `model` ignores its `padding_mask`" in done.stderr
    assert max(map(len, done.stderr.splitlines()[1:])) <= 80


def test_healthy_program_passes_and_is_stopped_after_its_evaluation(tmp_path: Path) -> None:
    code, document, rows = answered(tmp_path, "long")
    assert code == 0
    assert (document["schema"], document["ended"], document["steps"]) == ("truestep.check/1", "stopped", 32)
    assert rows["input-without-influence"]["outcome"] == "passed"
    assert rows["view-instead-of-permute"]["outcome"] == "passed"
    assert rows["functional-dropout-always-on"]["reason"] == "the script did not run to its end"
    assert not document["findings"]


def test_whole_program_answers_the_checks_on_its_end(tmp_path: Path) -> None:
    _, document, rows = answered(tmp_path)
    assert document["ended"] == "finished"
    assert rows["functional-dropout-always-on"]["outcome"] == "passed"


def test_program_without_evaluation_names_the_checks_that_were_not_asked(tmp_path: Path) -> None:
    code, document, rows = answered(tmp_path, "blind")
    assert (code, document["steps"]) == (0, 32)
    assert rows["augmentation-in-evaluation"]["outcome"] == "not-asked"
    assert rows["augmentation-in-evaluation"]["reason"] == "no evaluation data read again from a copy"
    assert rows["input-without-influence"]["outcome"] == "passed"


@pytest.mark.parametrize(("bound", "steps"), [(("--steps", "5"), 5), (("--seconds", "0"), 0)])
def test_bounds_stop_the_script(bound: tuple[str, str], steps: int, tmp_path: Path) -> None:
    done = check(tmp_path, *bound, "--format", "json", "train.py")
    assert done.returncode == 0
    document = json.loads(done.stderr)
    assert (document["ended"], document["steps"]) == ("stopped", steps)


def test_exit_code_of_the_script_stays(tmp_path: Path) -> None:
    code, _, rows = answered(tmp_path, "crash")
    assert code == 7
    assert rows["input-without-influence"]["outcome"] == "passed"


def test_missing_script_is_an_error(tmp_path: Path) -> None:
    done = check(tmp_path, "absent.py")
    assert done.returncode == 2
    assert "absent.py" in done.stderr
    assert "Traceback" not in done.stderr
