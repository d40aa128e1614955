"""The tables of the how-to have the numbers of `bench/results/export.json`."""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROWS = {
    (row["model"], row["format"]): row
    for row in json.loads((ROOT / "bench/results/export.json").read_text(encoding="utf-8"))["rows"]
}
PAGE = (ROOT / "docs/how-to/export.md").read_text(encoding="utf-8")
FORMATS = ("pt2", "onnx", "aoti")


def number(value):
    """Return a number in the form of the tables: 0.35, 2.5e-07, 0."""
    return "0" if value == 0 else f"{value:.1e}" if value < 1e-3 else f"{value:.2g}"


@pytest.mark.parametrize(
    "name", dict.fromkeys(name for name, to in ROWS if to in FORMATS and "relative" in ROWS[name, to])
)
def test_differences_are_those_that_were_measured(name):
    cells = [number(ROWS[name, to]["relative"]) for to in FORMATS]
    assert f"| {name} | {' | '.join(cells)} |\n" in PAGE


@pytest.mark.parametrize("name", dict.fromkeys(name for name, to in ROWS if to == "int8-pt2"))
def test_gains_of_int8_are_those_that_were_measured(name):
    cells = []
    for to in FORMATS:
        found = ROWS[name, f"int8-{to}"]["quantisation"]
        speed = [number(one["before_s"] / one["after_s"]) for one in found["latency"]]
        cells.append(f"{', '.join(speed)}; {number(found['bytes']['after'] / found['bytes']['before'])}")
    found = ROWS[name, "int8-pt2"]["quantisation"]
    metric, batch = found["metric"], found["latency"][-1]["batch"]
    head = f"{name} | {metric['before']:.4f}, {metric['after']:.4f} | {batch}"
    assert f"| {head} | {' | '.join(cells)} |\n" in PAGE


def test_what_cannot_be_exported_is_a_row_too():
    row = ROWS["cache in an attribute", "pt2"]
    assert "[side-effect]" in row["error"]
    assert "_export_models.py:" in row["error"]
