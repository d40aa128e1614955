"""The error of a run without steps, shared by all experiments."""

from __future__ import annotations

from truestep.errors import NoExperiment
from truestep.experiments.running.outcome import RunOutcome

_REFUSED = ("PermissionError", "Permission denied", "cannot be opened")
"""Texts of Python, of torch, and of torch 2.8 for a file that must not be written."""


def without_steps(outcome: RunOutcome, expected: str) -> NoExperiment:
    """Return the error of a run that took no step, with the reason."""
    happened, remedy = _reason(outcome)
    return NoExperiment(happened, expected=expected, remedy=remedy, said=outcome.said)


def _reason(outcome: RunOutcome) -> tuple[str, str]:
    if outcome.children:
        return (
            f"the script trains in child processes ({outcome.children}), which are not supervised",
            "train in the script's own process: call the function of the child processes directly, or start the "
            "processes with --nproc-per-node",
        )
    if outcome.how == "killed":
        return "the script exceeded its limit before its first step", "raise --limit, or --memory"
    if outcome.how == "crashed":
        remedy = "fix the error above"
        if "EOFError" in outcome.said:
            remedy = "pass its input as arguments: an experiment has no standard input"
        elif any(text in outcome.said for text in _REFUSED):
            remedy = "let it write below its working folder: an experiment forbids writing elsewhere"
        return "the script crashed before its first step", remedy
    return (
        f"the script {outcome.how} without training: no optimizer took a step, and no loss was backpropagated",
        "pass arguments with which the script trains",
    )
