"""Every proof of a rule with a fix: the fixed program is as recorded, stays, and behaves like the correct one."""

import ast
import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from programs import REPOSITORY, expected, supervise

from truestep.fixes.catalogue import all_fixes
from truestep.fixes.proposing import proposed

HERE = Path(__file__).parent
spec = importlib.util.spec_from_file_location("recorded", HERE / "recorded.py")
recorded = importlib.util.module_from_spec(spec)
spec.loader.exec_module(recorded)

WANTED = recorded.wanted()
NOT_IN_PROOF = {"step-without-backward"}
"""Rules with a fix that does not apply to the program of their proof."""
OTHER = {
    "broadcast-target", "eval-mode-missing", "functional-dropout-always-on", "hidden-state-not-detached",
    "logits-into-probability-loss", "loss-kept-with-graph", "missing-zero-grad", "samples-change-between-passes",
    "saved-by-every-rank", "zero-grad-once-per-epoch",
}  # fmt: skip
"""Proofs with a correct program that is written in another way: these fixed programs are run."""
NEAR = 0.25
"""Largest distance from the correct program's number, as a share of that of the broken one: memory varies."""


def test_every_rule_with_a_fix_and_a_proof_is_here():
    proved = {path.parent.relative_to(recorded.PROOFS).parts[0] for path in recorded.PROOFS.glob("**/proof.toml")}
    assert (set(all_fixes()) & proved) - NOT_IN_PROOF == {one.rule for one in WANTED.values()}
    assert len(WANTED) >= 50


@pytest.mark.parametrize("proof", WANTED)
def test_the_finding_is_at_the_marked_line(proof):
    one = WANTED[proof]
    assert (one.rule, one.site.line) in expected(Path(one.site.path))


@pytest.mark.parametrize("proof", WANTED)
def test_the_fix_is_as_recorded_and_stays(proof):
    one, old = WANTED[proof], recorded.program(proof)
    fix = proposed(old, one)
    assert fix is not None
    assert recorded.text(fix) == recorded.snapshot(proof).read_text(encoding="utf-8")
    compile(fix.new, "bad.py", "exec")
    assert ast.dump(ast.parse(fix.new)) != ast.dump(ast.parse(old))
    after = recorded.again(one, old, fix.new)
    assert after is None or proposed(fix.new, after) is None


def test_each_snapshot_has_its_proof():
    assert {path.name for path in recorded.SNAPSHOTS.glob("*.diff")} == {recorded.snapshot(one).name for one in WANTED}


@pytest.mark.parametrize("proof", sorted(set(WANTED) - OTHER))
def test_the_fixed_program_is_the_correct_one(proof):
    fix = proposed(recorded.program(proof), WANTED[proof])
    assert statements(fix.new) == statements((recorded.PROOFS / proof / "good.py").read_text(encoding="utf-8"))


def statements(text):
    """Return the syntax of a program without comments and its docstring."""
    return ast.dump(ast.Module(ast.parse(text).body[1:], []))


@pytest.mark.slow
@pytest.mark.parametrize("proof", sorted(OTHER))
def test_the_fixed_program_behaves_like_the_correct_one(proof, tmp_path):
    rule, measured = WANTED[proof].rule, tomllib.loads((recorded.PROOFS / proof / "proof.toml").read_text("utf-8"))
    broken = supervise(recorded.PROOFS / proof / "bad.py")
    (finding,) = [
        one
        for one in broken.report["findings"]
        if one["rule"] == rule and one["confidence"] != "low" and not one["explained_by"]
    ][:1]
    fix = proposed(recorded.program(proof), recorded.read(proof, recorded.entry(finding)))
    assert fix is not None
    program = tmp_path / "bad.py"
    program.write_text(fix.new, encoding="utf-8")
    run = supervise(program)
    assert run.how == "finished", str(run)
    assert rule not in {name for name, _ in run.found}, str(run)
    alone = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True, cwd=REPOSITORY)
    (result,) = re.findall(r"^result: (\S+)$", alone.stdout, re.MULTILINE)  # times and memory: without supervision
    good, bad = (measured["measured"][name][0] for name in ("good", "bad"))  # of seed 0, as here
    assert abs(float(result) - good) <= NEAR * abs(bad - good), f"{result}, not {good}; {bad} without the fix"
