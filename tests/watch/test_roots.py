"""One finding, not twelve: consequences are listed under their cause, and the most costly one comes first."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from truestep.events import Site
from truestep.findings import Confidence, Finding, Mark, Seen, Severity, Summary, shown
from truestep.report import closing
from truestep.report.terminal import render
from truestep.rules import all_rules
from truestep.supervision import Session
from truestep.supervision.root_causes import rooted

RULES = all_rules()


def found(rule, step=0, *, count=1, total=None, **more):
    return Finding(
        rule=rule,
        severity=more.pop("severity", Severity.ERROR),
        confidence=more.pop("confidence", Confidence.HIGH),
        message="something happened",
        primary=Mark(Site("train.py", 7, 0, 7, 3), "here"),
        seen=Seen(count, total, "steps", step),
        **more,
    )


def causes(*findings):
    return {finding.rule: finding.explained_by for finding in rooted(findings, RULES)}


CAUSE, GROWN, CUT, REST = "missing-zero-grad", "nan-or-inf", "graph-cut", "loss-without-parameters"


def test_what_a_failure_grows_into_is_listed_under_it():
    assert causes(found(GROWN, 40), found(CAUSE, 1)) == {CAUSE: "", GROWN: CAUSE}


def test_what_came_before_the_failure_stands_for_itself():
    assert causes(found(GROWN, 0), found(CAUSE, 1)) == {CAUSE: "", GROWN: ""}


def test_another_side_of_the_same_failure_is_listed_under_it_whenever_it_was_seen():
    assert causes(found(REST, 0), found(CUT, 90)) == {CUT: "", REST: CUT}


def test_a_chain_is_listed_under_its_beginning():
    assert causes(found(REST), found(CUT), found("training-without-grad")) == {
        "training-without-grad": "",
        CUT: "training-without-grad",
        REST: "training-without-grad",
    }


@pytest.mark.parametrize("cause", [{"suppressed": True}, {"confidence": Confidence.LOW}], ids=["allowed", "unsure"])
def test_what_is_not_shown_explains_nothing(cause):
    findings = rooted([found(GROWN, 40), found(CAUSE, 1, **cause)], RULES)
    assert [finding.rule for finding in shown(tuple(findings))] == [GROWN]


def test_the_order_is_severity_then_certainty_then_share_then_time():
    first, second = found("clip-after-step", 3, count=99, total=100), found("step-without-backward", 5)
    third, fourth = found(CAUSE, 0, count=12, total=100), found(CUT, confidence=Confidence.MEDIUM)
    last = found("no-grad-missing", severity=Severity.SPEED)
    shuffled = [last, fourth, third, second, first]
    assert rooted(shuffled, RULES) == [first, second, third, fourth, last]


def test_no_rule_is_its_own_cause():
    after = {id: {*rule.explains, *rule.leads_to} for id, rule in RULES.items()}
    assert {id for named in after.values() for id in named} <= set(RULES)
    while leaves := {id for id, named in after.items() if not named & set(after)}:
        after = {id: named for id, named in after.items() if id not in leaves}
    assert not after, "these explain each other in a circle"


def test_the_report_tells_consequences_under_their_cause_and_counts_one_failure():
    other = replace(found(GROWN, 41), primary=Mark(Site("train.py", 9, 0, 9, 3), "here"))
    findings = tuple(rooted([found(GROWN, 40), other, found(CAUSE, 1)], RULES))
    summary = Summary("train.py", "finished", steps=50, findings=findings)
    text = render(summary, width=200, colour=False)
    assert "= explains: nan-or-inf at train.py:7, first at step 40; nan-or-inf at train.py:9, first at step 41" in text
    assert text.count("error[") == 1
    assert closing.headline(summary).startswith("1 failure found")


def uncleared(model, optimizer, x, y):
    loss = nn.functional.mse_loss(model(2 * x), y)
    loss.backward()
    optimizer.step()
    return loss.detach()


def not_clipped(model, optimizer, x, y):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(30 * x), 100 * y)
    loss.backward()
    optimizer.step()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    return loss.detach()


@pytest.mark.parametrize(("step", "cause"), [(uncleared, "missing-zero-grad"), (not_clipped, "clip-after-step")])
def test_a_training_that_blows_up_has_one_finding(step, cause):
    torch.manual_seed(0)
    x, y = torch.randn(32, 20), torch.randn(32, 1)
    model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Session() as session:
        losses = [step(model, optimizer, x, y) for _ in range(100)]
    assert not losses[-1].isfinite()
    assert [finding.rule for finding in session.findings] == [cause]
    summary = session.stop("finished")
    assert "nan-or-inf" in {finding.rule for finding in summary.findings if finding.explained_by == cause}
