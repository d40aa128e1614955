"""Share of the mutants of bench/mutants that `truestep lint` finds, that a supervised run finds, and that either finds.

    python bench/lint_recall.py --save        lint the mutants; join the open half with bench/results/mutants.json
    python bench/lint_recall.py --run --save  run the mutants too and join both halves: many minutes

A mutant is found by lint if its text has a finding of high or medium confidence that its program does not have. Without
--run, all planted mutants count for lint, also those that change no result. With it, only mutants that run to their end
with another result than their program count, as in docs/reference/mutants.md. Misses are listed for the open half only.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import os
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results" / "lint_recall.json"
RUNS = ROOT / "bench" / "results" / "mutants.json"
os.environ["OMP_NUM_THREADS"] = "1"
os.environ.setdefault("TRUESTEP_WATCH", "0")
sys.path[:0] = [str(ROOT / "bench" / "mutants"), str(ROOT / "tests" / "support")]

import builds  # noqa: E402, F401
import drops  # noqa: E402, F401
import moves  # noqa: E402, F401
import swaps  # noqa: E402, F401
import warm  # noqa: E402
from healthy import Program, programs  # noqa: E402
from operators import OPERATORS, Mutant, mutants  # noqa: E402
from trial import digest, run  # noqa: E402

from truestep.findings import Confidence  # noqa: E402
from truestep.lint import lint  # noqa: E402

Pair = tuple[Program, Mutant]


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--per-operator", type=int, default=10, help="largest number of mutants of an operator")
    parser.add_argument("--run", action="store_true", help="run the mutants without a stored run")
    parser.add_argument("--save", action="store_true", help=f"write {RESULTS.relative_to(ROOT)}")
    parser.add_argument("--misses", action="store_true", help="print the misses of lint in the open half")
    options = parser.parse_args()
    stored = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {"runs": {}}
    chosen, runs = sample(options.per_operator), dict(stored["runs"])
    if options.run:
        _run(chosen, runs, save=options.save)
    start = time.perf_counter()
    rows = [_row(pair, runs) for pair in chosen]
    lint_s = round(time.perf_counter() - start, 1)
    halves = {half: [row for row in rows if row["half"] == half] for half in ("open", "aside")} | {"all": rows}
    result: dict[str, Any] = {
        "lint, all planted": {name: _lint(group) for name, group in halves.items()},
        "open half, with the runs of mutants.json": joined(halves["open"]),
        "lint and run, of mutants that count": {name: shares(_counting(group)) for name, group in halves.items()},
        "operators": {name: _lint(group) for name, group in _groups(rows).items()},
        "missed by lint, open half": [row["place"] for row in halves["open"] if not row["lint"]],
        "runs": runs,
    }
    if not result["lint and run, of mutants that count"]["all"]["mutants"]:  # no run is stored
        del result["lint and run, of mutants that count"]
    for name, one in result.items():
        if name not in ("runs", "missed by lint, open half"):
            print(name, json.dumps(one, indent=1), sep="\n")
    print(f"linted in {lint_s} s")
    if options.misses:
        print(*result["missed by lint, open half"], sep="\n")
    if options.save:
        RESULTS.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def joined(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Return the shares in the open half that the runs of `make mutants` found, alone and with lint."""
    known = json.loads(RUNS.read_text(encoding="utf-8"))
    counted, found = (known["scores"]["half"]["open"][name] for name in ("mutants", "found %"))
    missed = set(known["not found, open half"])
    also = sum(row["lint"] for row in rows if row["place"] in missed)
    present = sum(row["place"] in missed for row in rows)
    return {
        "mutants": counted,
        "run %": found,
        "missed by the run": len(missed),
        "of these among the planted": present,
        "of these found by lint": also,
        "either %": round(found + 100 * also / counted, 1),
    }


def _counting(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if row["run"] is not None]


def _lint(rows: list[dict[str, Any]]) -> dict[str, float]:
    return {"mutants": len(rows), "lint %": round(100 * sum(row["lint"] for row in rows) / max(1, len(rows)), 1)}


def sample(most: int) -> list[Pair]:
    """Return the first mutants of each operator, in the order of bench/mutants, a mutant of each operator in turn."""
    rounds: dict[int, list[Pair]] = defaultdict(list)
    everything = programs()
    for name in sorted(OPERATORS):
        found = [(one, mutant) for one in everything for mutant in islice(mutants(one.source, name), 1)]
        found.sort(key=lambda one: hashlib.sha256(f"{name} {one[0].name}".encode()).digest())
        for place, pair in enumerate(found[:most]):
            rounds[place].append(pair)
    return [pair for place in sorted(rounds) for pair in rounds[place]]


def _run(chosen: Iterable[Pair], runs: dict[str, Any], *, save: bool) -> None:
    warm.install()
    originals: dict[Path, str] = {}
    for number, (program, mutant) in enumerate(chosen):
        key = _key(mutant)
        if key in runs:
            continue
        if program.path not in originals:
            originals[program.path] = digest(program.path)
        original = originals[program.path]
        if original in ("", "slow"):
            runs[key] = None
            continue
        trial = run(mutant.text, program.path.name, original, mutant.scope, OPERATORS[mutant.operator].silent)
        runs[key] = bool(trial.found) if trial.valid else None
        if save and number % 5 == 0:  # a long run may be interrupted
            known = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
            RESULTS.write_text(json.dumps(known | {"runs": runs}, indent=1) + "\n", encoding="utf-8")


def _row(pair: Pair, runs: dict[str, Any]) -> dict[str, Any]:
    """Return whether lint and the run found a mutant; for the run None if it was not run or does not count."""
    program, mutant = pair
    before, after = _rules(program.source.text), _rules(mutant.text)
    return {
        "operator": mutant.operator,
        "half": program.half,
        "place": f"{mutant.operator} {program.name}:{mutant.line}",
        "lint": bool(after - before),
        "run": runs.get(_key(mutant)),
    }


@functools.cache
def _rules(text: str) -> Counter[str]:
    return Counter(one.rule for one in lint(text) if one.confidence is not Confidence.LOW)


def _groups(rows: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[row["operator"]].append(row)
    return dict(sorted(groups.items()))


def shares(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Return the number of mutants, and the percentages that lint, the run, and at least one of them found."""
    count = max(1, len(rows))
    return {
        "mutants": len(rows),
        "lint %": round(100 * sum(row["lint"] for row in rows) / count, 1),
        "run %": round(100 * sum(row["run"] for row in rows) / count, 1),
        "either %": round(100 * sum(row["lint"] or row["run"] for row in rows) / count, 1),
    }


def _key(mutant: Mutant) -> str:
    return hashlib.sha256(f"{mutant.operator}\0{mutant.text}".encode()).hexdigest()[:16]


if __name__ == "__main__":
    main()
