"""``truestep verify-resume``: is a run that was killed and resumed the one that nobody killed?"""

from __future__ import annotations

import json
import math
import shlex
from textwrap import indent, wrap
from typing import Annotated

import typer

from truestep.cli._experiment import (
    Arguments,
    Format,
    Limit,
    Memory,
    Module,
    Picture,
    Processes,
    Script,
    bench_of,
    check_picture,
    explained,
    write_picture,
)
from truestep.cli._stopping import Exit, stoppable
from truestep.errors import UsageError
from truestep.experiments.curve import drawn
from truestep.experiments.missing import Missing
from truestep.experiments.picture import svg
from truestep.experiments.resume import Resume, Trial, Verdict
from truestep.experiments.resume import verify_resume as run_verify

_WIDTH = 80
CODES = {
    Verdict.EXACT: Exit.FINE,
    Verdict.ROUNDING: Exit.FINE,
    Verdict.NOTHING_SAVED: Exit.FAILS,
    Verdict.UNREPEATABLE: Exit.UNSURE,
    Verdict.DIFFERS: Exit.FAILS,
    Verdict.ANEW: Exit.FAILS,
    Verdict.CRASHED: Exit.FAILS,
}
_VISIBLE = 0.02
"""Part of the height of a chart by which losses must lie apart on average to be drawn."""
_UNREPEATABLE = (
    "Global generators were given a seed: look for others that have none, for clocks and the system's randomness, and "
    "for kernels that add in any order (torch.use_deterministic_algorithms(True) names them)."
)
_RUN = 'truestep.Run saves all of this and puts it back: run.save(), or save_every_n_steps=, and resume="auto".'


@stoppable
def verify_resume(
    script: Script,
    arguments: Arguments = None,
    module: Module = False,
    resume_args: Annotated[
        str, typer.Option(metavar="ARGS", help="Added to the script's own when it is resumed.", show_default=False)
    ] = "",
    kills: Annotated[int, typer.Option(min=1, help="How often it is killed, each time in a run of its own.")] = 3,
    at: Annotated[
        list[int] | None, typer.Option(min=1, metavar="STEP", help="Kill after this step; may be repeated.")
    ] = None,
    during_save: Annotated[bool, typer.Option(help="Kill once in the midst of a save.")] = True,
    seed: Annotated[int, typer.Option(help="Chooses where.")] = 0,
    steps: Annotated[int, typer.Option(min=2, help="Optimizer steps after which a run ends.")] = 2000,
    limit: Limit = 600.0,
    memory: Memory = None,
    processes: Processes = 1,
    format: Format = "text",
    picture: Picture = None,
) -> int:
    """Kill a script (kill -9), resume it, and tell the first step that differs from the run that nobody killed.

    The script itself is not changed. It runs in copies of the working folder, with trackers off, and overwrites
    nothing. Exit code 0 when every run that went on is exact, 1 when one is not, 3 when that cannot be told, 2 for a
    usage error.
    """
    if picture is not None:
        check_picture(picture)
    bench = bench_of(script, arguments, module, steps=steps, limit=limit, memory=memory, processes=processes)
    with explained(bench):
        result = run_verify(bench, _split(resume_args), kills=kills, seed=seed, at=at or (), during_save=during_save)
    if picture is not None:
        shown = _shown(result)
        one, other = _curves(result, shown).values()
        write_picture(picture, svg({"uninterrupted": one, "resumed": other}, f"loss; killed {shown.kill}"))
    print(json.dumps(_document(result), indent=2) if format == "json" else _text(result))
    return Exit.INTERRUPTED if result.interrupted else CODES[result.verdict]


def _split(arguments: str) -> list[str]:
    try:
        return shlex.split(arguments)
    except ValueError as error:
        raise UsageError(
            f"--resume-args cannot be read: {str(error).lower()}",
            expected="arguments as a shell takes them",
            remedy="close its quotes",
        ) from None


def _text(result: Resume) -> str:
    files = f"{result.writes} write{'s' * (result.writes != 1)} of state seen"
    parts = [f"uninterrupted: {result.steps} steps, {files}", _table(result)]
    shown = _shown(result)
    if result.verdict in (Verdict.DIFFERS, Verdict.ROUNDING):
        parts += _charts(_curves(result, shown))
    if result.interrupted:
        parts.append("interrupted: this is what was seen until then")
    parts.append(_wrapped(sentence(result)))
    parts += [_explained(trial) for trial in result.trials if trial.note]
    pieces = result.missing
    effective = [item for item in pieces if item[0].effect]
    others = [item for item in pieces if not item[0].effect]
    if effective:
        kills = len(result.trials)
        listed = [_piece(n, one, count, kills) for n, (one, count) in enumerate(effective, 1)]
        parts.append("not as it was when the run went on:\n\n" + "\n\n".join(listed))
    if others:
        names = ", ".join(one.title for one, _ in others)
        either = " either, without effect on what differs first" if effective else ", without effect in these steps"
        parts.append(_wrapped(f"not put back{either}: {names}"))
    if result.verdict is Verdict.UNREPEATABLE:
        parts.append(_wrapped(_UNREPEATABLE))
    if effective or result.verdict in (Verdict.ANEW, Verdict.CRASHED):
        parts.append(_wrapped(_RUN))
    return "\n\n".join(parts)


def sentence(result: Resume) -> str:
    """Return the verdict on all kills for people."""
    worst, kills = result.verdict, len(result.trials)
    times = "the kill" if kills == 1 else f"each of {kills} kills"
    if worst is Verdict.EXACT:
        again = max(trial.again for trial in result.trials)
        text = f"exact: after {times} the run that goes on is the uninterrupted one, bit by bit, to its last step"
        return f"{text}; {_steps(again)} at most {'is' if again == 1 else 'are'} done again" if again else text
    bad = [trial for trial in result.trials if trial.verdict is worst]
    some = f" ({len(bad)} of {kills} kills)" if kills > 1 else ""
    if worst is Verdict.ROUNDING:
        return f"equal within rounding: the first step that differs is {bad[0].first}, in the last digits of its loss"
    if worst is Verdict.NOTHING_SAVED:
        return f"nothing was saved before the kill{some}: the run starts anew, and its steps are lost"
    if worst is Verdict.UNREPEATABLE:
        return "cannot tell: runs of this script differ without any kill"
    if worst is Verdict.DIFFERS:
        firsts = [trial.first for trial in bad if trial.first is not None]
        where = f": the first step that differs is {min(firsts)}" if firsts else ""
        return f"differs{some}{where}"
    if worst is Verdict.ANEW:
        return f"does not resume{some}: the run starts anew from its first step"
    return f"cannot go on{some}: the resumed run crashes"


def _explained(trial: Trial) -> str:
    note = f"{trial.kill}: {trial.note}"
    if trial.kill.write is not None and trial.verdict in (Verdict.CRASHED, Verdict.ANEW):
        note += f". The kill left a part of {trial.kill.path}"
        if trial.in_folder:
            note += (
                ", and none of what is written into its folder after it: write a checkpoint of several files into a "
                "folder of another name, and rename it when it is whole; where a library writes it, remove the part, "
                "and begin from the checkpoint before"
            )
        else:
            note += ": write under another name, and rename it when it is whole"
    elif trial.verdict is Verdict.ANEW:
        note += ". Give what makes the script resume with --resume-args"
    return _wrapped(note)


def _piece(number: int, one: Missing, count: int, kills: int) -> str:
    seen = f" ({count} of {kills} kills)" if kills > 1 else ""
    lines = [f"{number}. {one.title}{seen}"]
    lines.append(indent(_wrapped(one.detail, _WIDTH - 3), "   "))
    lines.append(indent(_wrapped(f"mend: {one.remedy}", _WIDTH - 3), "   "))
    return "\n".join(lines)


def _table(result: Resume) -> str:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("killed", overflow="fold")
    for title in ("goes on at step", "done again", "first that differs"):
        table.add_column(title, justify="right")
    for trial in result.trials:
        went_on = "" if trial.went_on is None else str(trial.went_on + 1)
        first = "none" if trial.first is None else str(trial.first)
        if trial.verdict not in (Verdict.EXACT, Verdict.ROUNDING, Verdict.DIFFERS):
            first = str(trial.verdict)
        table.add_row(str(trial.kill), went_on, str(trial.again) if went_on else "", first)
    console = Console(width=_WIDTH, highlight=False, force_terminal=False)
    with console.capture() as captured:
        console.print(table)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def _shown(result: Resume) -> Trial:
    """Return the kill of which the losses are drawn: the first that differs."""
    return next((trial for trial in result.trials if trial.first is not None), result.trials[0])


def _curves(result: Resume, trial: Trial) -> dict[str, list[list[float]]]:
    """Return the losses of the uninterrupted run, and of a killed one with the run that went on."""
    went_on = trial.went_on or 0
    spliced = [*result.losses[:went_on], *trial.losses]
    name = f"killed {trial.kill}, and resumed"
    return {"uninterrupted": [_finite(result.losses)], name: [_finite(spliced)]}


def _finite(losses: object) -> list[float]:
    return [loss for loss in losses if loss is not None and math.isfinite(loss)] or [0.0]  # type: ignore[attr-defined]


def _charts(curves: dict[str, list[list[float]]]) -> list[str]:
    """Return both curves on one scale, where an eye can tell them apart."""
    one, other = (series[0] for series in curves.values())
    apart = [abs(a - b) for a, b in zip(one, other, strict=False)]
    if sum(apart) <= _VISIBLE * len(apart) * (max(one) - min(one)):
        return []
    return [f"{name}\n" + "\n".join(drawn(series[0], height=5, beside=[one, other])) for name, series in curves.items()]


def _steps(count: int) -> str:
    return f"{count} step{'s' * (count != 1)}"


def _wrapped(text: str, width: int = _WIDTH) -> str:
    return "\n".join(wrap(text, width, break_long_words=False, break_on_hyphens=False))


def _document(result: Resume) -> dict[str, object]:
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
