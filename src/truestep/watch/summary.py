"""Put together what there is to report about one run."""

from __future__ import annotations

from dataclasses import replace

from truestep.events import RunStarted
from truestep.findings import Finding, Summary
from truestep.source import suppressed
from truestep.watch.judge import Judge


def summarise(
    judge: Judge,
    started: RunStarted,
    how: str,
    *,
    errors: list[str],
    record: str = "",
    given_up: str = "",
    blind: str = "",
) -> Summary:
    """Return the summary of a judged run, with what comments in the code allow marked as suppressed.

    Args:
        given_up: why costly reads were given up, empty where they were not.
        blind: why watching had to end before the run did, empty where it had not.
    """
    return Summary(
        script=started.script,
        how=how,
        steps=judge.progress.step,
        findings=tuple(marked(judge.findings())),
        verdicts=tuple(judge.verdicts(given_up=given_up, blind=blind)),
        internal_errors=(*errors, *judge.errors),
        torch=started.torch,
        ranks=started.world_size,
        record=record,
    )


def marked(findings: list[Finding]) -> list[Finding]:
    return [replace(finding, suppressed=True) if suppressed(finding) else finding for finding in findings]
