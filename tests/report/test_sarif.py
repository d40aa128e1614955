import json
from dataclasses import replace
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator, FormatChecker
from runs import MIXED, PLAIN, RUNS, VERDICTS

from truestep.findings import Mark, Summary
from truestep.report import render
from truestep.rules import all_rules

SCHEMA = json.loads((Path(__file__).parents[1] / "data" / "sarif" / "sarif-2.1.0.json").read_text(encoding="utf-8"))


def run_of(summary):
    (run,) = json.loads(render(summary, "sarif"))["runs"]
    return run


@pytest.mark.parametrize("name", RUNS)
def test_log_fits_the_schema_of_sarif(name):
    Draft202012Validator(SCHEMA, format_checker=FormatChecker()).validate(json.loads(render(RUNS[name], "sarif")))


def test_log_with_every_rule_of_the_catalogue_fits_the_schema():
    findings = tuple(replace(MIXED, rule=id) for id in all_rules())
    log = json.loads(render(Summary("train.py", "finished", 3, findings), "sarif"))
    Draft202012Validator(SCHEMA, format_checker=FormatChecker()).validate(log)
    for rule in log["runs"][0]["tool"]["driver"]["rules"]:
        assert rule["shortDescription"]["text"].endswith(".")
        assert "## Fix" in rule["help"]["markdown"]


def test_region_is_in_characters_counted_from_one():
    results = {result["ruleId"]: result for result in run_of(RUNS["many"])["results"]}
    region = results["step-without-backward"]["locations"][0]["physicalLocation"]["region"]
    assert region == {
        "startLine": 46,
        "startColumn": 15,
        "endLine": 46,
        "endColumn": 31,
        "snippet": {"text": "optimizer.step()"},
    }


def test_levels_and_indices_belong_to_the_rules():
    run = run_of(RUNS["many"])
    assert {result["ruleId"]: result["level"] for result in run["results"]} == {
        "missing-zero-grad": "error",
        "step-without-backward": "error",
        "scheduler-wrong-cadence": "error",
        "graph-cut": "error",
        "layers-in-plain-container": "warning",
        "loss-kept-with-graph": "note",
    }
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]


def test_suppression_carries_the_reason_of_the_comment():
    results = {result["ruleId"]: result for result in run_of(RUNS["many"])["results"]}
    assert results["scheduler-wrong-cadence"]["suppressions"] == [
        {"kind": "inSource", "status": "accepted", "justification": "one step per epoch is meant"}
    ]
    assert "suppressions" not in results["missing-zero-grad"]


def test_suppression_by_configuration_is_external():
    (result,) = run_of(Summary("train.py", "finished", 3, (replace(MIXED, suppressed=True),)))["results"]
    assert [suppression["kind"] for suppression in result["suppressions"]] == ["external"]


def test_uris_are_relative_below_the_working_directory_and_files_elsewhere(programs):
    inside = replace(PLAIN.primary.site, path=str(programs / "a folder" / "net.py"))
    outside = replace(PLAIN.primary.site, path=str(programs.parent / "net.py"))
    uris = []
    for site in (inside, outside):
        (result,) = run_of(Summary("train.py", "finished", 3, (replace(PLAIN, primary=Mark(site, ""), related=()),)))[
            "results"
        ]
        uris.append(result["locations"][0]["physicalLocation"]["artifactLocation"])
    assert uris[0] == {"uri": "a%20folder/net.py", "uriBaseId": "%SRCROOT%"}
    assert uris[1] == {"uri": (programs.parent / "net.py").as_uri()}


def test_fingerprint_survives_lines_above_and_tells_equal_lines_apart(programs):
    def prints(*findings):
        results = run_of(Summary("train.py", "finished", 3, findings))["results"]
        return [result["partialFingerprints"]["truestepFinding/v1"] for result in results]

    before = prints(MIXED)
    (programs / "train.py").write_text("\n\n" + (programs / "train.py").read_text(encoding="utf-8"), encoding="utf-8")
    moved = replace(MIXED, primary=Mark(replace(MIXED.primary.site, line=43, end_line=43), "step 1"))
    assert prints(moved) == before
    assert len(set(prints(moved, moved))) == 2


def test_rules_that_were_not_observed_are_notifications():
    notes = run_of(Summary("train.py", "finished", 3, (), VERDICTS))["invocations"][0]["toolExecutionNotifications"]
    assert {"unseen-0": "not observed: no scheduler"}.items() <= {
        note["associatedRule"]["id"]: note["message"]["text"] for note in notes if "associatedRule" in note
    }.items()


def test_crash_is_no_success():
    assert run_of(RUNS["many"])["invocations"][0]["executionSuccessful"] is False
    assert run_of(RUNS["one"])["invocations"][0]["executionSuccessful"] is True


def test_finding_without_a_place_points_to_the_script():
    (result,) = run_of(Summary("train.py", "finished", 3, (replace(MIXED, primary=Mark(None, ""), related=()),)))[
        "results"
    ]
    assert result["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "train.py", "uriBaseId": "%SRCROOT%"}
    }
