import json
from importlib.resources import files

import pytest
from jsonschema import Draft202012Validator
from runs import RUNS

from truestep.report import render

SCHEMA = json.loads(files("truestep.report").joinpath("report.schema.json").read_text(encoding="utf-8"))


def test_schema_is_valid():
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("name", RUNS)
def test_report_fits_its_schema(name):
    Draft202012Validator(SCHEMA).validate(json.loads(render(RUNS[name], "json")))


def test_sites_are_in_characters_counted_from_one():
    report = json.loads(render(RUNS["many"], "json"))
    sites = {finding["rule"]: finding["primary"]["site"] for finding in report["findings"]}
    site = sites["step-without-backward"]
    assert site["text"][site["column"] - 1 : site["end_column"] - 1] == "optimizer.step()"
    kept = sites["loss-kept-with-graph"]
    assert (kept["line"], kept["end_line"], kept["column"], kept["end_column"]) == (43, 45, 5, 6)


def test_suppressed_and_unsure_findings_are_in_the_report_and_not_in_the_count():
    report = json.loads(render(RUNS["many"], "json"))
    assert len(report["findings"]) == 6
    assert report["counts"] == {
        "failures": 4,
        "suppressed": 1,
        "low_confidence": 1,
        "clear": 38,
        "not_observed": 9,
        "internal_errors": 1,
    }


def test_every_field_is_documented():
    from pathlib import Path

    page = (Path(__file__).parents[2] / "docs" / "reference" / "report-json.md").read_text(encoding="utf-8")
    names = set(SCHEMA["properties"]) | {name for part in SCHEMA["$defs"].values() for name in part["properties"]}
    names |= set(SCHEMA["properties"]["counts"]["properties"])
    assert not sorted(name for name in names if f"`{name}`" not in page)
