"""The smallest setup that fits, and the answer in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from truestep.experiments.plan.footprint import Footprint, Strategy, footprint, smallest
from truestep.experiments.plan.plan import Planned

RECOMPUTE, AUTOCAST = "activation-checkpointing", "bf16-autocast"
"""The changes of `--recompute` and `--autocast`."""
_MUCH = 0.4
"""Fraction of the peak from which activations are named as the largest part."""
_UNITS = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3))


def size(amount: float) -> str:
    """Return an amount of bytes in three digits, with its unit.

    >>> [size(amount) for amount in (0, 812, 4_096, 1_234_567, 38.2e9, 112e9)]
    ['0 B', '812 B', '4.10 kB', '1.23 MB', '38.2 GB', '112 GB']
    """
    for unit, of in _UNITS:
        if amount >= of:
            value = amount / of
            return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f} {unit}"
    return f"{amount:.0f} B"


def sentences(found: Planned) -> list[str]:
    """Return the answer, and advice if there is any; at least one sentence."""
    return [_answer(found), *_advice(found)]


def fits(found: Planned, row: Footprint) -> list[str]:
    """Return the names of the devices on which a row fits."""
    return [name for name, memory in found.devices.items() if row.peak <= memory]


def _answer(found: Planned) -> str:
    single, ddp = found.rows[:2]
    fitting = fits(found, single)
    if fitting:
        name = fitting[0]
        text = f"it fits on one device of {name}: {size(single.peak)} at the peak, {_share(found, single, name)} of it"
        if name in fits(found, ddp):
            return f"{text}; on several devices, DDP fits too"
        more = f"its buckets add {size(ddp.exchange)}: pass gradient_as_bucket_view=True, or take FSDP2"
        return f"{text}; DDP does not fit: {more}"
    largest = list(found.devices)[-1]
    memory = found.devices[largest]
    count = smallest(found.needs, memory)
    text = f"it does not fit on one device of {largest}: it needs {size(single.peak)}"
    if count is None:
        alone = footprint(found.needs, Strategy.FSDP, 4096)
        return f"{text}; FSDP2 does not fit either, on any number: {size(alone.peak)} remain on each device"
    each = footprint(found.needs, Strategy.FSDP, count).peak
    return f"{text}; FSDP2 fits on {count} devices or more, with {size(each)} on each of {count}"


def _share(found: Planned, row: Footprint, name: str) -> str:
    share = row.peak / found.devices[name]
    return "less than 1%" if share < 0.01 else f"{share:.0%}"


def _advice(found: Planned) -> Iterator[str]:
    for change, option in ((RECOMPUTE, "--recompute"), (AUTOCAST, "--autocast")):
        if found.changes.get(change) == 0:
            why = "repeated blocks in a list" if change == RECOMPUTE else "models that are not under autocast already"
            yield f"{option} changed nothing: it needs {why}"
    single = found.rows[0]
    activations = single.at_peak[1] / max(1, single.peak)
    tight = not fits(found, single) or not found.given
    options = [
        option
        for change, option in ((RECOMPUTE, "--recompute"), (AUTOCAST, "--autocast"))
        if change not in found.changes
    ]
    if activations >= _MUCH and tight and options:
        yield (
            f"activations are {activations:.0%} of the peak and proportional to the batch; "
            f"{' or '.join(options)} shows the plan with {_how(options)}"
        )
    if not found.blocks[0]:
        yield "the model has no container with several blocks of one class: FSDP2 gathers all parameters at once"


def _how(options: list[str]) -> str:
    names = {"--recompute": "recomputed blocks", "--autocast": "autocast to bf16"}
    return " or ".join(names[option] for option in options)
