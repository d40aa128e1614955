"""The formulae of large runs: equal to the tables of the documentation, and to the bytes that torch sends."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from truestep.experiments.plan.scale import all_reduce_bytes, exposed_for, exposed_s, fsdp_bytes, speedup

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).parent / "programs" / "sent_by_fsdp.py"


@pytest.fixture(scope="module")
def drawn():
    spec = importlib.util.spec_from_file_location("drawn_scale", ROOT / "docs" / "assets" / "scale.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_pages_and_the_picture_are_those_of_the_formulae(drawn):
    for path in drawn.PAGES:
        page = path.read_text(encoding="utf-8")
        assert drawn.filled(page) == page, "run `python docs/assets/scale.py`"
        assert page.count("<!-- table: ") == page.count("<!-- end -->") >= 1
    picture = ROOT / "docs" / "assets" / "strategies.svg"
    assert drawn.picture() == picture.read_text(encoding="utf-8"), "run `python docs/assets/scale.py`"


def test_a_changed_table_is_written_again(drawn):
    page = "before\n<!-- table: sources -->\nwrong\n<!-- end -->\nafter\n"
    again = drawn.filled(page)
    assert "wrong" not in again
    assert "- PCIe 5.0 x16: PCI-SIG" in again
    assert again.startswith("before\n")
    assert again.endswith("\nafter\n")


def test_fsdp_sends_what_the_formula_says():
    done = subprocess.run([sys.executable, str(PROGRAM)], capture_output=True, text=True, check=True, timeout=600)
    sent, blocks, outside = map(float, done.stdout.split())
    # torch gathers the parameters outside of the blocks once, and the others for both passes.
    assert sent == pytest.approx(fsdp_bytes(blocks, 8) + 2 / 3 * fsdp_bytes(outside, 8), rel=1e-6)


def test_a_gain_and_the_time_that_it_loses_are_two_forms_of_one_equation():
    for gained in (1.0, 2.5, 3.7, 4.0):
        assert speedup(4, 0.08, exposed_for(4, 0.08, gained)) == pytest.approx(gained)
    assert speedup(4, 0.08, exposed_s(all_reduce_bytes(1.4e9, 4) / 300e9, 0.0)) == pytest.approx(3.68, abs=0.01)


def test_measured_plans_are_within_a_tenth():
    rows = json.loads((ROOT / "bench" / "results" / "plan.json").read_text(encoding="utf-8"))["rows"]
    assert {row["strategy"] for row in rows} == {"single", "DDP", "FSDP2"}
    assert max(abs(row[key]) for row in rows for key in ("script_error", "factory_error")) < 0.1
