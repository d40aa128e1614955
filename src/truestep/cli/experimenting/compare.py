"""``truestep compare``: which of two choices of arguments is better, over several seeds?"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Annotated, Literal

import typer

from truestep.cli.experimenting.experiment import (
    Format,
    Fresh,
    Limit,
    Memory,
    Module,
    PageFile,
    Picture,
    Processes,
    Script,
    bench_of,
    check_page,
    check_picture,
    explained,
    write_page,
    write_picture,
)
from truestep.cli.experimenting.stopping import Exit, stoppable
from truestep.errors import UsageError
from truestep.experiments.compare.compare import ChoiceAnswer
from truestep.experiments.compare.compare import compare as run_compare
from truestep.experiments.reports.compare import curves, document, text
from truestep.experiments.reports.pages import compare_page
from truestep.experiments.reports.picture import svg

CODES = dict.fromkeys(ChoiceAnswer, Exit.FINE) | {ChoiceAnswer.UNSURE: Exit.UNSURE}
"""Exit codes by answer."""


@stoppable
def compare(
    script: Script,
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ARGS] -- A [-- B]", help="Arguments of both runs, then those of A and of B."),
    ] = None,
    module: Module = False,
    seeds: Annotated[int, typer.Option(min=3, help="Number of seeds; both choices run once per seed.")] = 5,
    steps: Annotated[
        int | None,
        typer.Option(min=2, help="Optimizer steps after which a run ends; default: its own end.", show_default=False),
    ] = None,
    metric: Annotated[
        str, typer.Option(metavar="NAME", help="Decide by the printed number with this name.", show_default=False)
    ] = "",
    better: Annotated[
        Literal["higher", "lower", ""],
        typer.Option(help="The better direction of a number with another name than loss or accuracy."),
    ] = "",
    within: Annotated[
        float,
        typer.Option(min=0.01, max=50, metavar="PERCENT", help="Differences below this percentage do not count."),
    ] = 0.5,
    budget: Annotated[
        float | None,
        typer.Option(min=1, metavar="SECONDS", help="Time after which no further seed begins.", show_default=False),
    ] = None,
    limit: Limit = 3600.0,
    memory: Memory = None,
    processes: Processes = 1,
    fresh: Fresh = False,
    format: Format = "text",
    picture: Picture = None,
    report: PageFile = None,
) -> int:
    """Compare two choices of arguments of a script over several seeds.

    truestep compare train.py --epochs 3 -- --lr 0.1 -- --lr 0.01 compares two learning rates; with one list after --
    it is compared with none. The script is not changed: it runs in a copy of the working folder, with trackers off,
    and overwrites nothing. Judged are the numbers of the last line that it prints, such as an accuracy, or else the
    training loss at the end. Exit code 0 for an answer, 3 if the seeds cannot tell, 2 for a usage error.
    """
    common, first, second = split(arguments or ())
    if picture is not None:
        check_picture(picture)
    check_page(report)
    bench = bench_of(script, common, module, steps=steps, limit=limit, memory=memory, processes=processes, fresh=fresh)
    with explained(bench):
        result = run_compare(
            bench,
            ([*common, *first], [*common, *second]),
            seeds,
            within=within / 100,
            budget_s=math.inf if budget is None else budget,
            metric=metric,
            direction=better,
        )
    if picture is not None:
        write_picture(picture, svg(curves(result), f"training loss, mean and range of {result.seeds} seeds"))
    write_page(report, lambda words: compare_page(f"truestep compare {words}", result, text(result)), bench.target)
    print(json.dumps(document(result), indent=2) if format == "json" else text(result))
    return Exit.INTERRUPTED if result.ended == "interrupted" else CODES[result.answer]


def split(arguments: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
    """Return the arguments of both runs, of A and of B; with one list after ``--``, A has none.

    Raises:
        UsageError: no list follows ``--``, or more than two do, or both are equal.

    >>> split(["--epochs", "3", "--", "--lr", "0.1", "--", "--lr", "0.01"])
    (['--epochs', '3'], ['--lr', '0.1'], ['--lr', '0.01'])
    >>> split(["--", "--wide"])
    ([], [], ['--wide'])
    """
    lists: list[list[str]] = [[]]
    for argument in arguments:
        if argument == "--":
            lists.append([])
        else:
            lists[-1].append(argument)
    if len(lists) not in (2, 3):
        raise UsageError(
            f"two choices must be given, got {len(lists) - 1}",
            expected="expected one or two lists of arguments, each after --",
            remedy="write `truestep compare train.py -- --lr 0.1 -- --lr 0.01`",
        )
    common, first, second = (lists[0], [], lists[1]) if len(lists) == 2 else lists
    if first == second:
        raise UsageError(
            f"both choices have the same arguments: {' '.join(first) or 'none'}",
            expected="expected two lists that differ",
            remedy="write `truestep compare train.py -- --lr 0.1 -- --lr 0.01`",
        )
    return common, first, second
