"""Steps that repeat are only counted: the findings are those of rules that see every step."""

from __future__ import annotations

from pathlib import Path

import pytest
from programs import REPOSITORY, supervise

TIMED = {"loader-starves-training", "workers-respawned"}
"""Their findings tell seconds."""
PROOFS = sorted(REPOSITORY.glob("proofs/*/bad.py"))
BROKEN = sorted(REPOSITORY.glob("tests/wild/adversarial_broken/*.py"))


def names(path: Path) -> str:
    return path.parent.name if path.stem == "bad" else path.stem


@pytest.mark.slow
@pytest.mark.parametrize("program", [*PROOFS, *BROKEN], ids=names)
def test_counted_steps_give_the_findings_of_steps_that_are_seen(program: Path) -> None:
    counted, seen = supervise(program), supervise(program, counting=False)
    assert counted.how == seen.how == "finished"
    assert counted.steps == seen.steps
    for run in (counted, seen):
        for finding in run.findings:
            if finding["rule"] in TIMED:
                finding.update(message="", cost="", seen="")
    assert counted.findings == seen.findings
