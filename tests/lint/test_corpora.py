"""Proofs and planted failures are found at their lines; healthy programs of every style have no finding."""

from pathlib import Path

import pytest
from programs import REPOSITORY, expected

from truestep.findings import Confidence
from truestep.lint.engine import Code, inspect, inspecting, read_code

PROOFS = REPOSITORY / "proofs"
WILD = REPOSITORY / "tests" / "wild"
RULES = inspecting()
NOT_IN_PROOF = {
    "augmentation-in-evaluation": "a data set of the proof; the syntax knows those of torchvision",
    "learning-rate-dead": "a warm-up that is never stepped; the syntax knows a rate of zero",
    "learning-rate-off-course": "a formula that falls too fast; the syntax knows a rate that is never set",
    "result-never-read": "a mask that nothing reads; the syntax knows results of operations that are dropped",
    "symmetric-initialisation": "found where the weights are set, not at the call of the model",
    "train-validation-overlap": "an overlap of indices",
    "training-data-not-shuffled": "labels sorted by class, which only a run can see",
}
"""Rules that know another form of the failure than that of their proof, with a description."""
ACCIDENTS = ("digits_accident.py",)
"""Examples with a failure, as those of `examples/raw`."""
HEALTHY = [
    *PROOFS.glob("**/good.py"),
    *(WILD / "programs").glob("*.py"),
    *(WILD / "adversarial_healthy").glob("*.py"),
    *(WILD / "frameworks").glob("*.py"),
    *(REPOSITORY / "src" / "truestep" / "templates").glob("*.py"),
    *(one for one in (REPOSITORY / "examples").rglob("*.py") if one.parent.name != "raw" and one.name not in ACCIDENTS),
    *(REPOSITORY / "src" / "truestep" / "loop").rglob("*.py"),
    *(REPOSITORY / "src" / "truestep" / "model").rglob("*.py"),
]  # fmt: skip
CONTAINERS = (WILD / "adversarial_broken", WILD / "frameworks_planted")
LEAST_RECALL = 0.41
"""Share of the planted failures of rules that read the syntax; a run finds all of them."""


def findings(path):
    """Return the findings of a file of high and medium confidence."""
    code = read_code(path)
    assert isinstance(code, Code), code
    results, errors = inspect(code, tuple(RULES.values()))
    assert not errors, errors[0]
    assert not results.problems, results.problems
    return [one for one in results.findings if one.confidence is not Confidence.LOW]


def places(path):
    """Return the rules found in a file, each with the lines that it marks."""
    return {
        (one.rule, mark.site.line)
        for one in findings(path)
        for mark in (one.primary, *one.related)
        if mark.site is not None
    }


@pytest.mark.parametrize("rule", sorted(id for id, rule in RULES.items() if rule.in_runs))
def test_proof_is_found_at_its_line(rule):
    marked, found = expected(PROOFS / rule / "bad.py"), places(PROOFS / rule / "bad.py")
    if rule in NOT_IN_PROOF:
        assert not marked & found, "found after all, remove it from NOT_IN_PROOF"
    else:
        assert marked <= found


@pytest.mark.program
def test_healthy_programs_are_quiet():
    alarms = [
        f"{path.relative_to(REPOSITORY)}:{one.primary.site.line} {one.rule}"
        for path in HEALTHY
        for one in findings(path)
    ]
    assert len(HEALTHY) > 700
    assert alarms == []


def test_most_planted_failures_are_found():
    marked: list[tuple[Path, str, int]] = []
    found = 0
    for path in [path for folder in CONTAINERS for path in sorted(folder.glob("*.py"))]:
        mine = {(rule, line) for rule, line in expected(path) if rule in RULES}
        marked += [(path, *one) for one in mine]
        found += len(mine & places(path)) if mine else 0
    assert len(marked) > 150
    assert found / len(marked) >= LEAST_RECALL, f"{found} of {len(marked)}"
