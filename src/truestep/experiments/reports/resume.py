"""The report of `truestep verify-resume`: text, JSON, and curves for the picture."""

from __future__ import annotations

import math
from textwrap import indent

from truestep.experiments.reports.curve import drawn
from truestep.experiments.reports.text import WIDTH, rendered, wrapped
from truestep.experiments.resume.missing import Missing
from truestep.experiments.resume.resume import Resume
from truestep.experiments.resume.trial import KillTrial, ResumeVerdict

_VISIBLE = 0.02
"""Curves are drawn if their mean distance is at least this fraction of the chart's height."""
_UNREPEATABLE = (
    "The global generators were seeded: look for other generators without a seed, for clocks and system randomness, "
    "and for kernels that add in any order (torch.use_deterministic_algorithms(True) names them)."
)
_RUN = 'truestep.Run saves and restores all of this: run.save(), or save_every_n_steps=, and resume="auto".'


def text(result: Resume) -> str:
    """Return the result as text: kills, curves, the verdict, and the state that differs."""
    files = f"state was written {result.writes} time{'s' * (result.writes != 1)}"
    parts = [f"uninterrupted: {result.steps} steps, {files}", _table(result)]
    trial_shown = shown(result)
    if result.verdict in (ResumeVerdict.DIFFERS, ResumeVerdict.ROUNDING):
        parts += _charts(curves(result, trial_shown))
    if result.interrupted:
        parts.append("interrupted: these are the results up to then")
    parts.append(wrapped(sentence(result)))
    parts += [explained(trial) for trial in result.trials if trial.note]
    pieces = result.missing
    effective = [item for item in pieces if item[0].effect]
    others = [item for item in pieces if not item[0].effect]
    if effective:
        kills = len(result.trials)
        listed = [_piece(n, one, count, kills) for n, (one, count) in enumerate(effective, 1)]
        parts.append("different after the resume:\n\n" + "\n\n".join(listed))
    if others:
        names = ", ".join(one.title for one, _ in others)
        either = " either, without effect on the first difference" if effective else ", without effect in these steps"
        parts.append(wrapped(f"not restored{either}: {names}"))
    if result.verdict is ResumeVerdict.UNREPEATABLE:
        parts.append(wrapped(_UNREPEATABLE))
    if effective or result.verdict in (ResumeVerdict.STARTED_AGAIN, ResumeVerdict.CRASHED):
        parts.append(wrapped(_RUN))
    return "\n\n".join(parts)


def sentence(result: Resume) -> str:
    """Return the verdict on all kills as a sentence."""
    worst, kills = result.verdict, len(result.trials)
    times = "the kill" if kills == 1 else f"each of {kills} kills"
    if worst is ResumeVerdict.EXACT:
        again = max(trial.again for trial in result.trials)
        said = f"exact: after {times} the resumed run equals the uninterrupted one, bit by bit, to its last step"
        return f"{said}; at most {_steps(again)} {'is' if again == 1 else 'are'} repeated" if again else said
    bad = [trial for trial in result.trials if trial.verdict is worst]
    some = f" ({len(bad)} of {kills} kills)" if kills > 1 else ""
    if worst is ResumeVerdict.ROUNDING:
        return f"equal within rounding: the first step that differs is {bad[0].first}, in the last digits of its loss"
    if worst is ResumeVerdict.NOTHING_SAVED:
        return f"nothing was saved before the kill{some}: the run starts from the beginning, and its steps are lost"
    if worst is ResumeVerdict.UNREPEATABLE:
        return "cannot tell: runs of this script differ without any kill"
    if worst is ResumeVerdict.DIFFERS:
        firsts = [trial.first for trial in bad if trial.first is not None]
        where = f": the first step that differs is {min(firsts)}" if firsts else ""
        return f"differs{some}{where}"
    if worst is ResumeVerdict.STARTED_AGAIN:
        return f"does not resume{some}: the run starts again from its first step"
    return f"cannot go on{some}: the resumed run crashes"


def explained(trial: KillTrial) -> str:
    """Return the note on a trial, with advice."""
    note = f"{trial.kill}: {trial.note}"
    if trial.kill.write is not None and trial.verdict in (ResumeVerdict.CRASHED, ResumeVerdict.STARTED_AGAIN):
        note += f". The kill left an incomplete {trial.kill.path}"
        if trial.in_folder:
            note += (
                ", and the files that follow it in its folder are missing: write a checkpoint of several files into a "
                "folder of another name, and rename the folder when it is complete; if a library writes it, delete the "
                "incomplete checkpoint, and resume from the one before"
            )
        else:
            note += ": write to a file of another name, and rename it when it is complete"
    elif trial.verdict is ResumeVerdict.STARTED_AGAIN:
        note += ". Pass the arguments that make the script resume with --resume-args"
    return wrapped(note)


def _piece(number: int, one: Missing, count: int, kills: int) -> str:
    seen = f" ({count} of {kills} kills)" if kills > 1 else ""
    lines = [f"{number}. {one.title}{seen}"]
    lines.append(indent(wrapped(one.detail, WIDTH - 3), "   "))
    lines.append(indent(wrapped(f"mend: {one.remedy}", WIDTH - 3), "   "))
    return "\n".join(lines)


def _table(result: Resume) -> str:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("killed", overflow="fold")
    for title in ("resumes at step", "repeated", "first difference"):
        table.add_column(title, justify="right")
    for trial in result.trials:
        went_on = "" if trial.went_on is None else str(trial.went_on + 1)
        first = "none" if trial.first is None else str(trial.first)
        if trial.verdict not in (ResumeVerdict.EXACT, ResumeVerdict.ROUNDING, ResumeVerdict.DIFFERS):
            first = str(trial.verdict)
        table.add_row(str(trial.kill), went_on, str(trial.again) if went_on else "", first)
    return rendered(table)


def shown(result: Resume) -> KillTrial:
    """Return the trial to draw: the first with a difference, or else the first."""
    return next((trial for trial in result.trials if trial.first is not None), result.trials[0])


def curves(result: Resume, trial: KillTrial) -> dict[str, list[list[float]]]:
    """Return the finite losses of the uninterrupted run, and those of a killed run joined with its resumed one."""
    went_on = trial.went_on or 0
    spliced = [*result.losses[:went_on], *trial.losses]
    name = f"killed {trial.kill}, and resumed"
    return {"uninterrupted": [_finite(result.losses)], name: [_finite(spliced)]}


def _finite(losses: object) -> list[float]:
    return [loss for loss in losses if loss is not None and math.isfinite(loss)] or [0.0]  # type: ignore[attr-defined]


def _charts(curves: dict[str, list[list[float]]]) -> list[str]:
    """Return charts of both curves on one scale, or [] if they differ too little to be seen."""
    one, other = (series[0] for series in curves.values())
    apart = [abs(a - b) for a, b in zip(one, other, strict=False)]
    if sum(apart) <= _VISIBLE * len(apart) * (max(one) - min(one)):
        return []
    return [f"{name}\n" + "\n".join(drawn(series[0], height=5, beside=[one, other])) for name, series in curves.items()]


def _steps(count: int) -> str:
    return f"{count} step{'s' * (count != 1)}"


def document(result: Resume) -> dict[str, object]:
    """Return the result as values for JSON."""
    return {
        "verdict": str(result.verdict),
        "sentence": sentence(result),
        "steps": result.steps,
        "how": result.how,
        "writes": result.writes,
        "missing": [{**_plain(one), "kills": count} for one, count in result.missing],
        "kills": [
            {
                "where": str(trial.kill),
                "moment": trial.kill.moment,
                "verdict": str(trial.verdict),
                "done": trial.done,
                "went_on": trial.went_on,
                "again": trial.again,
                "first": trial.first,
                "beyond": trial.beyond,
                "note": trial.note,
                "missing": [_plain(one) for one in trial.missing],
            }
            for trial in result.trials
        ],
    }


def _plain(one: Missing) -> dict[str, object]:
    return {"piece": one.piece, "title": one.title, "detail": one.detail, "effect": one.effect, "remedy": one.remedy}
