"""Put together what there is to report about one run."""

from __future__ import annotations

from dataclasses import replace

from truestep.events import RunStarted
from truestep.findings import Finding, PostMortem, Summary
from truestep.source import suppressed
from truestep.supervision.judge import Judge
from truestep.supervision.root_causes import rooted
from truestep.supervision.uncalled import pointed


def summarise(
    judge: Judge,
    started: RunStarted,
    how: str,
    *,
    errors: list[str],
    record: str = "",
    given_up: str = "",
    blind: str = "",
    post_mortem: PostMortem | None = None,
    error: str = "",
) -> Summary:
    """Return the summary of a judged run, with what comments in the code allow marked as suppressed.

    Args:
        given_up: why costly reads were given up, empty where they were not.
        blind: why watching had to end before the run did, empty where it had not.
        post_mortem: of what the run died, where that could be told.
        error: type and first line of the exception that ended the run, empty where none did.
    """
    return Summary(
        script=started.script,
        how=how,
        steps=judge.progress.step,
        findings=tuple(told(judge)),
        verdicts=tuple(judge.verdicts(given_up=given_up, blind=blind)),
        internal_errors=(*errors, *judge.errors),
        torch=started.torch,
        ranks=started.world_size,
        record=record,
        post_mortem=post_mortem,
        coverage=judge.extent.coverage(judge.progress, error),
    )


def told(judge: Judge) -> list[Finding]:
    """Return the findings so far: what the code allows and what follows from another one is marked as such."""
    found = (replace(pointed(finding), suppressed=suppressed(finding)) for finding in judge.findings())
    return rooted(found, {rule.id: type(rule) for rule in judge.rules})
