"""The inference of the model of an unmodified script, in a child process."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from truestep.errors import NoExperiment
from truestep.experiments.inference.measured import InferenceMeasured, read
from truestep.experiments.running.absent import without_steps
from truestep.experiments.running.bench import Bench
from truestep.experiments.running.outcome import RunOutcome, Variant


def bench_script(
    bench: Bench,
    *,
    batches: Sequence[int],
    threads: Sequence[int],
    only: Sequence[str],
    budget_s: float,
    variable: str,
) -> InferenceMeasured:
    """Run a script for two steps, and time the inference of its model.

    Args:
        bench: the script.
        batches: numbers of samples; empty for 1 and that of the script.
        threads: numbers of threads; empty for that of the script.
        only: names of ways; empty for all.
        budget_s: approximate duration in seconds, without that of the script.
        variable: name of the model's variable; "" for the largest trained one.

    Raises:
        NoExperiment: the script calls no such model.
    """
    settings = {
        "batches": list(batches),
        "threads": list(threads),
        "only": list(only),
        "budget_s": budget_s,
        "variable": variable,
    }
    quiet = replace(bench, cache=None, steps=None)
    outcome = quiet.run(Variant("the script, up to its second step, then its model", (), (("inference", settings),)))
    found = outcome.results.get("inference", {})
    if "error" in found:
        happened, expected, remedy = found["error"]
        raise NoExperiment(happened, expected=expected, remedy=remedy, said=outcome.said)
    if "settings" not in found:
        raise _without_model(outcome, found, variable)
    return read(found, f"{found['kind']} `{found['model']}`", _facts(found))


def _facts(found: Mapping[str, Any]) -> list[str]:
    shapes = ", ".join(f"{name} {shape}" for name, shape in found["inputs"])
    site = found["site"]
    where = "" if site is None else f", first called at {os.path.relpath(site[0])}:{site[1]}"
    facts = [
        f"{found['parameters']:,} parameters{where}",
        f"inputs of {'an evaluation' if found['mode'] == 'eval' else 'a training step'}: {shapes}",
    ]
    others = [name for name in found["models"] if name != found["model"]]
    return [*facts, f"other models, for --variable: {', '.join(others)}"] if others else facts


def _without_model(outcome: RunOutcome, found: Mapping[str, Any], variable: str) -> NoExperiment:
    models = found.get("models", [])
    if variable and models and outcome.how != "crashed":
        return NoExperiment(
            f"the script calls no model of the name {variable!r}",
            expected=f"expected one of {', '.join(models)}",
            remedy="correct --variable",
            said=outcome.said,
        )
    if outcome.how in ("crashed", "killed") or outcome.children:
        return without_steps(outcome, "expected a script that calls its model")
    return NoExperiment(
        f"the script {outcome.how} without calling a model with parameters",
        expected="expected calls of an nn.Module",
        remedy="pass arguments with which the script calls its model",
        said=outcome.said,
    )
