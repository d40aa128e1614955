"""Data sets that the workers of a loader share, from the syntax."""

from __future__ import annotations

import re
from collections.abc import Iterator

from truestep.syntax import Call, Program, Scope, Suspicion, names_in


def iterable_repeated_by_workers(program: Program) -> Iterator[Suspicion]:
    """Yield loaders with workers over a stream of this file that does not divide its samples."""
    if "worker_info" in program.text or "worker_init_fn" in program.text:
        return
    for call, owner in _with_workers(program):
        if not any(base == "torch.utils.data.IterableDataset" for base in program.bases(owner)):
            continue
        reader = program.methods(owner, "__iter__")
        if reader is None or any(re.search(r"rand|shuffle|choice|rank", name) for name in names_in(reader.node)):
            continue
        yield Suspicion(
            call.node,
            f"every worker reads the whole of `{owner.name}`, so that each sample comes once per worker",
            "starts workers",
            "divide the samples in `__iter__` by `torch.utils.data.get_worker_info()`",
            ((reader.node, "is the same in every worker"),),
        )


def worker_randomness_duplicated(program: Program) -> Iterator[Suspicion]:
    """Yield loaders with workers over a data set of this file with a random generator made in `__init__`."""
    if "worker_info" in program.text or "worker_init_fn" in program.text:
        return
    for call, owner in _with_workers(program):
        read, start = program.methods(owner, "__getitem__"), program.methods(owner, "__init__")
        if read is None or start is None:
            continue
        for key, bindings in start.bindings.items():
            made = program.call_at.get(bindings[0].value) if bindings[0].value is not None else None
            if made is None or made.name not in (
                "numpy.random.default_rng",
                "numpy.random.RandomState",
                "random.Random",
            ):
                continue
            if any(name.startswith(key) for name in read.loads) and key not in read.bindings:
                yield Suspicion(
                    call.node,
                    f"every worker has a copy of the generator `{key}`, and draws the same numbers",
                    "starts workers",
                    "seed a generator in `__getitem__`, or from `get_worker_info().seed` in each worker",
                    ((made.node, "made once, and copied into the workers"),),
                )


def _with_workers(program: Program) -> Iterator[tuple[Call, Scope]]:
    """Yield loaders with a number of workers, and the class of this file that their data set is an object of."""
    for call in program.named("torch.utils.data.DataLoader"):
        workers = program.values.constant(call.argument(5, "num_workers"), call.context, call.order)
        value = call.argument(0, "dataset")
        if not isinstance(workers, int) or workers < 2 or value is None:
            continue
        owner = program.models.owner(value, call.context, call.order)
        if owner is not None:
            yield call, owner
