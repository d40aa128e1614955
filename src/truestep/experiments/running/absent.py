"""Why a run has no steps to look at: said in one way by all experiments."""

from __future__ import annotations

from truestep.errors import NoExperiment
from truestep.experiments.running.outcome import Outcome


def without_steps(outcome: Outcome, expected: str) -> NoExperiment:
    """Return the error of a run that took no step, with the reason.

    Args:
        outcome: of the run.
        expected: what the experiment needs.
    """
    happened, remedy = _reason(outcome)
    return NoExperiment(happened, expected=expected, remedy=remedy, said=outcome.said)


def _reason(outcome: Outcome) -> tuple[str, str]:
    if outcome.children:
        return (
            f"the script trains in child processes ({outcome.children}), and these are not followed",
            "give a script that trains in its own process: call the function that they run, or start the processes "
            "with --nproc-per-node",
        )
    if outcome.how == "killed":
        return "the script was over its limit before its first step", "raise --limit, or --memory"
    if outcome.how == "crashed":
        remedy = "mend what it says above"
        if "EOFError" in outcome.said:
            remedy = "give it what it asks for as arguments: an experiment has no standard input"
        elif "PermissionError" in outcome.said or "Permission denied" in outcome.said:
            remedy = "let it write below its working folder: an experiment writes nothing else"
        return "the script crashed before its first step", remedy
    return (
        f"the script {outcome.how}, and trained nothing: no optimizer took a step, and no loss went backward",
        "give arguments with which the script trains",
    )
