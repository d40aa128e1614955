"""Groups of parameters that belong together in a model, derived from their names."""

from __future__ import annotations

from collections.abc import Iterable

from truestep.events import ModelMet
from truestep.rules._rule import Progress


def in_leaf_modules(model: ModelMet, run: Progress) -> list[int]:
    """Return the trainable parameters of modules without submodules: such a module uses them whenever it runs.

    A parameter of a module with submodules (a mask token, a class token) may be left unused by a forward on purpose.
    """
    met = [run.parameters[p] for p in model.parameters if p in run.parameters]
    owners = {p.parameter: p.name.rpartition(".")[0] for p in met}
    containers: set[str] = set()
    for owner in owners.values():
        while owner:
            owner = owner.rpartition(".")[0]
            containers.add(owner)
    return [p.parameter for p in met if p.trainable and owners[p.parameter] not in containers]


def apart(left: Iterable[str], right: Iterable[str]) -> bool:
    """Return True if two sets of parameter names belong to different submodules and are not mixed within them.

    >>> apart(["net.head.weight"], ["net.body.0.weight", "net.body.1.weight"])
    True
    >>> apart(["net.0.weight", "net.1.weight"], ["net.0.lora_a", "net.1.lora_a"])
    False
    """
    ours, theirs = [name.split(".") for name in left], [name.split(".") for name in right]
    rows = [*ours, *theirs]
    same = 0
    while all(len(row) > same + 1 and row[same] == rows[0][same] for row in rows):
        same += 1
    return {row[same] for row in ours}.isdisjoint(row[same] for row in theirs)
