"""``truestep prove``: compare a script with and without the remedy of a finding."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from truestep.cli.experimenting.experiment import (
    Arguments,
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
from truestep.cli.shell import completion
from truestep.errors import NoExperiment
from truestep.experiments.changes import REMEDIES
from truestep.experiments.prove.prove import ProofAnswer, RemedyProof, found
from truestep.experiments.prove.prove import prove as run_prove
from truestep.experiments.reports.pages import prove_page
from truestep.experiments.reports.picture import svg
from truestep.experiments.reports.prove import curves, document, rest, text
from truestep.experiments.running.bench import Bench
from truestep.experiments.running.outcome import RunOutcome
from truestep.report.error_text import of_experiment
from truestep.rules import rule as rule_of

CODES = {ProofAnswer.MATTERS: Exit.FAILS, ProofAnswer.UNSURE: Exit.UNSURE, ProofAnswer.DOES_NOT: Exit.FINE}
"""Exit codes by answer. The order is that of precedence where findings have several answers."""


@stoppable
def prove(
    script: Script,
    arguments: Arguments = None,
    module: Module = False,
    rule: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            help="Prove this finding only; default: all findings.",
            autocompletion=completion.with_remedy,
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=3, help="Number of seeds; both variants run once per seed.")] = 3,
    steps: Annotated[int, typer.Option(min=2, help="Optimizer steps after which a run ends.")] = 2000,
    within: Annotated[
        float,
        typer.Option(min=0.01, max=50, metavar="PERCENT", help="Differences below this percentage do not count."),
    ] = 2.0,
    limit: Limit = 600.0,
    memory: Memory = None,
    processes: Processes = 1,
    fresh: Fresh = False,
    format: Format = "text",
    picture: Picture = None,
    report: PageFile = None,
) -> int:
    """Run a script with and without the remedy of each finding, and compare.

    The script itself is not changed: the remedy is applied from outside. It runs in a copy of the working folder, with
    trackers off, and overwrites nothing. Exit code 1 if a finding matters, 0 if none does or nothing was found, 3 if
    the answer is uncertain, 2 for a usage error.
    """
    if rule is not None:
        rule_of(rule)
    if picture is not None:
        check_picture(picture)
    check_page(report)
    bench = bench_of(
        script, arguments, module, steps=steps, limit=limit, memory=memory, processes=processes, fresh=fresh
    )
    with explained(bench):
        seen = found(bench)
        wanted = [rule] if rule is not None else [id for id in dict.fromkeys(seen.findings) if id in REMEDIES]
        proofs, unknown = _all(bench, wanted, seeds, seen, within / 100)
    if picture is not None and proofs:
        write_picture(picture, svg(curves(proofs[0]), f"{proofs[0].rule}: loss, mean and range of {seeds} seeds"))
    others = [id for id in dict.fromkeys(seen.findings) if id not in REMEDIES] if rule is None else []
    said = "\n\n".join([*map(text, proofs), *rest(seen, others, bool(wanted))])
    write_page(report, lambda words: prove_page(f"truestep prove {words}", proofs, said), bench.target)
    print(json.dumps([document(proof) for proof in proofs], indent=2) if format == "json" else said)
    if others or unknown or (seen.how == "crashed" and not proofs):
        return _code(proofs, ProofAnswer.UNSURE)
    return _code(proofs)


def _code(proofs: Sequence[RemedyProof], *others: ProofAnswer) -> int:
    """Return the exit code for all findings: one that matters decides, then one with an uncertain answer."""
    answers = {*others, *(proof.answer for proof in proofs), ProofAnswer.DOES_NOT}
    return next(code for answer, code in CODES.items() if answer in answers)


def _all(
    bench: Bench, rules: Sequence[str], seeds: int, seen: RunOutcome, within: float
) -> tuple[list[RemedyProof], list[NoExperiment]]:
    """Return the proofs of the findings, and the errors of proofs that failed; these do not stop the other proofs.

    Raises:
        NoExperiment: no proof could be made.
    """
    if seen.how == "crashed":
        sys.stderr.write(seen.said.rstrip() + "\n\n")
    proofs: list[RemedyProof] = []
    errors: list[NoExperiment] = []
    for rule in rules:
        try:
            proofs.append(run_prove(bench, rule, seeds, seen, within=within))
        except NoExperiment as error:
            errors.append(error)
        except KeyboardInterrupt:
            if not proofs:
                raise
            break
        if proofs and proofs[-1].interrupted:
            break
    if errors and not proofs:
        raise errors[0]
    for reason in errors:
        sys.stderr.write(of_experiment(f"cannot tell: {reason}") + "\n\n")
    return proofs, errors
