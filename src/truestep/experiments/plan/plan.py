"""Does a training fit into the memory of a device, and on how many devices?

One process runs some optimizer steps and measures its needs. The memory of other strategies is computed from them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from truestep.errors import NoExperiment, UsageError
from truestep.experiments.plan.footprint import Footprint, Moment, Needs, Strategy, footprint
from truestep.experiments.plan.units import common_memory
from truestep.experiments.running.absent import without_steps
from truestep.experiments.running.bench import Bench
from truestep.experiments.running.outcome import RunOutcome, Variant
from truestep.supervision.launching.launch import Target

COUNTS = (2, 4, 8)
"""Numbers of devices for FSDP2, by default."""
TOO_LARGE = (
    "plan a model that is too large for this machine with its factory: truestep plan --input SHAPE MODULE:FACTORY"
)
_PROGRAM = "truestep.experiments.plan.fake_step"
_RESERVED = 0.93
"""Fraction of a device's memory that a training can use; the rest is left to the driver and to fragmentation."""


@dataclass(frozen=True, slots=True)
class Planned:
    """Result of the experiment.

    Attributes:
        needs: memory of one process, in bytes.
        types: number of parameters and their bytes, by type.
        trained: number of parameters that are trained.
        models: classes of the models.
        optimizers: classes of the optimizers.
        blocks: number of blocks that FSDP2 gathers one by one, and their most frequent class.
        step: number of the measured step, from 1.
        measured_on: device of the measurement; "" for tensors without memory.
        at_once: True if the update on a GPU needs a copy of the parameters that it did not need here.
        changes: number of places at which each change was applied.
        rows: memory of one device, by strategy.
        devices: usable bytes by name of the device, the smallest first.
        given: True if the devices are those of the user or of this machine, False for a table of common ones.
        outcome: outcome of the run.
    """

    needs: Needs
    types: Mapping[str, tuple[int, int]]
    trained: int
    models: tuple[str, ...]
    optimizers: tuple[str, ...]
    blocks: tuple[int, str]
    step: int
    measured_on: str
    at_once: bool
    changes: Mapping[str, int]
    rows: tuple[Footprint, ...]
    devices: Mapping[str, int]
    given: bool
    outcome: RunOutcome


def factory_target(factory: str, inputs: Sequence[str], optimizer: str, dtype: str) -> Target:
    """Return the target that trains the model of a factory on tensors without memory.

    Args:
        factory: "package.module:function".
        inputs: shape and type of each input, such as "8x1024:int64".
        optimizer: name of an optimizer of torch.
        dtype: type of the parameters; "" for those that the factory makes.
    """
    return Target(_PROGRAM, (factory, optimizer, dtype, *inputs), module=True)


def plan(
    bench: Bench,
    *,
    memory: int | None = None,
    counts: Sequence[int] = COUNTS,
    changes: Sequence[str] = (),
    steps: int = 3,
) -> Planned:
    """Run some steps of a script, and compute the memory of one device under each strategy.

    Args:
        bench: the script, or the result of `factory_target`.
        memory: usable bytes of one device; None takes the GPUs of this machine, or a table of common ones.
        counts: numbers of devices for FSDP2.
        changes: names of speed-ups that are applied, such as "activation-checkpointing".
        steps: optimizer steps to run; the last one is measured. At least 3.

    Raises:
        NoExperiment: the script took too few steps, or ran out of memory.
        UsageError: the factory is unknown, or does not make a model that can be planned.
    """
    variant = Variant("some steps", tuple((name, {}) for name in changes), (("needs", {"steps": steps}),))
    bench = bench if bench.limit_bytes else replace(bench, limit_bytes=_free_memory())
    with bench.place() as place:
        outcome = place.run(variant, from_start=True)
    found = outcome.results.get("needs", {})
    _check(outcome, found, steps, bench)
    return _read(found, outcome, memory, counts)


def _check(outcome: RunOutcome, found: Mapping[str, Any], steps: int, bench: Bench) -> None:
    if found.get("measured"):
        return
    taken = found.get("steps", 0)
    error = found.get("error", {})
    if "happened" in error:
        raise UsageError(error["happened"], expected=error["expected"], remedy=error["remedy"])
    if "memory" in error:
        raise NoExperiment("the script ran out of memory", expected=error["memory"], remedy=TOO_LARGE)
    if outcome.how == "killed":
        late = outcome.seconds >= bench.limit_s
        happened = f"the script ran longer than {bench.limit_s:g} seconds" if late else "the script ran out of memory"
        remedy = "raise --limit" if late else TOO_LARGE
        raise NoExperiment(f"{happened} before its optimizer step {steps}", remedy=remedy, said=outcome.said)
    if not taken and found.get("passes") and outcome.how != "crashed":
        raise NoExperiment(
            "no optimizer of torch took a step, although losses were backpropagated",
            expected="expected an optimizer of torch.optim: its state is a part of the memory",
            remedy="plan the model of a script that updates its weights itself with its factory: "
            "truestep plan --input SHAPE MODULE:FACTORY",
        )
    if not taken:
        raise without_steps(outcome, "expected an optimizer of torch that steps")
    raise NoExperiment(
        f"the script {outcome.how} after {taken} of {steps} optimizer steps",
        expected="expected two steps before the measured one: the first creates the state of the optimizer",
        remedy="pass arguments with which the script trains longer",
        said=outcome.said,
    )


def _read(found: Mapping[str, Any], outcome: RunOutcome, memory: int | None, counts: Sequence[int]) -> Planned:
    measured = found["measured"]
    needs = needs_of(measured)
    rows = [footprint(needs, Strategy.SINGLE), footprint(needs, Strategy.DDP, 2)]
    rows += [footprint(needs, Strategy.FSDP, count) for count in sorted(set(counts))]
    own = {name: round(_RESERVED * size) for name, size in sorted(found["devices"], key=lambda device: device[1])}
    given = {f"{memory / 1e9:g} GB": memory} if memory is not None else own
    return Planned(
        needs=needs,
        types={name: (count, size) for name, (count, size) in measured["types"].items()},
        trained=measured["trained"],
        models=tuple(measured["models"]),
        optimizers=tuple(measured["optimizers"]),
        blocks=(measured["blocks"]["count"], measured["blocks"]["kind"]),
        step=found["steps"],
        measured_on="" if measured["fake"] else measured["device"],
        at_once=measured["at_once"],
        changes={name: counts["applied"] for name, counts in outcome.changes.items()},
        rows=tuple(rows),
        devices=given or common_memory(),
        given=bool(given),
        outcome=outcome,
    )


def needs_of(measured: Mapping[str, Any]) -> Needs:
    """Return the needs from the message of the instrument.

    torch's optimizers step all parameters at once on a GPU, with a temporary copy of them, and one by one on the CPU. A
    script that was measured on the CPU gets that copy.
    """
    moments, blocks = measured["moments"], measured["blocks"]
    copy = measured["gradients"] if measured["at_once"] else 0
    return Needs(
        parameters=measured["parameters"],
        gradients=measured["gradients"],
        optimizer=measured["optimizer"],
        buffers=measured["buffers"],
        held=measured["held"],
        activations=moments["activations"],
        passes=tuple(Moment(*moment) for moment in moments["passes"]),
        updates=tuple(Moment(made, kept, max(working, copy)) for made, kept, working in moments["updates"]),
        largest_block=blocks["largest"],
        outside=blocks["outside"],
        block_gradients=blocks["largest_gradients"],
    )


def _free_memory() -> int | None:
    """Return the bytes that a run may take without harm to this machine; None if unknown."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        text = Path("/proc/meminfo").read_text(encoding="ascii")
        return int(0.9 * 1024 * int(text.split("MemAvailable:")[1].split()[0]))
    return None
