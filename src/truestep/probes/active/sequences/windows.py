"""Windows of tokens that end with the word that the model is to predict.

The classes are those of the tokens, as an embedding of as many rows shows. Tokens that were drawn at random, as in a
test of a memory, are excluded: they are equally frequent. Of few rows this cannot be seen; then the data are to be all
rows of the training, and its source is to draw no whole numbers. A series that stays at one value is excluded by the
token before.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

from truestep import source
from truestep.events import Site
from truestep.probes.active.sequences.ahead import are_uneven, sequences
from truestep.probes.active.trial import Trial
from truestep.probes.copies.call import Call, Path

_SEED = 3_456_711
_LEAST_STEPS = 3
_MOST_STEPS = 12
_LEAST_TARGETS = 3
_LEAST_ROWS = 96
_MOST_ROWS = 512
_MOST_LENGTH = 256
_OTHERS = 0.5
"""Largest share of rows with the target in one of the other columns."""
_DRAWS = frozenset({"choice", "choices", "integers", "multinomial", "randint", "random_", "randrange"})


@dataclass(slots=True)
class _Seen:
    """Rows of a model that all end with their targets."""

    path: Path
    steps: int = 0
    rows: set[tuple[int, ...]] = field(default_factory=set)


class Windows:
    """Finds the argument of a model with rows that end with their targets, in every batch that is read.

    Args:
        torch: the module.
    """

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._seen: dict[int, _Seen] = {}
        self._done: set[int] = set()
        """Models that were judged, or with a row that does not end with its target."""

    def ending(self, module: Any, model: int, call: Call, target: Any, classes: int, site: Site | None) -> Path | None:
        """Return the argument with the target in its last column, after enough batches.

        Args:
            module: the model.
            model: its number.
            call: its call.
            target: targets of the loss.
            classes: number of classes.
            site: line of the loss.
        """
        torch, seen = self._torch, self._seen.pop(model, None)
        if model in self._done:
            return None
        if seen is None and not _is_to_repeat(site):
            ends = [path for path in sequences(call, torch) if _is_end(call, path, target, torch)]
            layers = [one for one in module.modules() if isinstance(one, torch.nn.Embedding)] if ends else []
            seen = _Seen(ends[0]) if any(one.num_embeddings == classes for one in layers) else None
        elif seen is not None and not _is_end(call, seen.path, target, torch):
            seen = None
        if seen is None or seen.steps == _MOST_STEPS:
            self._done.add(model)
            return None
        value = call.tensors(torch)[seen.path]
        seen.steps += 1
        before, rows = len(seen.rows), {tuple(row) for row in value[:_MOST_ROWS].tolist()}
        seen.rows |= rows
        targets = len({row[-1] for row in seen.rows})
        whole = len(seen.rows) == before and len(value) <= _MOST_ROWS and not _draws(site)
        uneven = len(seen.rows) >= _LEAST_ROWS and are_uneven(seen.rows)
        if seen.steps < _LEAST_STEPS or targets < _LEAST_TARGETS or not (uneven or whole):
            self._seen[model] = seen
            return None
        self._done.add(model)
        return seen.path


def _is_end(call: Call, path: Path, target: Any, torch: Any) -> bool:
    """Return True if the last column of tokens is the target, and no other one is in most rows."""
    value = call.tensors(torch).get(path)
    if value is None or value.dim() != 2 or target.dim() != 1 or len(value) != len(target):
        return False
    if not 1 < value.shape[1] <= _MOST_LENGTH or bool((target < 0).any()):
        return False
    same = (value == target.to(value.device)[:, None]).float().mean(0)
    return float(same[-1]) == 1 and float(same[:-1].max()) <= _OTHERS


def _draws(site: Site | None) -> bool:
    """Return True if a file calls a function that draws whole numbers, or cannot be read."""
    tree = None if site is None else source.parsed(site.path)
    calls = [] if tree is None else [node for node in source.walk(tree) if isinstance(node, ast.Call)]
    return tree is None or any(ast.unparse(call.func).rpartition(".")[2] in _DRAWS for call in calls)


def _is_to_repeat(site: Site | None) -> bool:
    """Return True if a loss names a part of the input as its target, as in ``loss_of(net(x), x[:, -1])``."""
    tree = None if site is None else source.parsed(site.path)
    if tree is None or site is None:
        return False
    for node in source.walk(tree):
        if isinstance(node, ast.Call) and node.lineno <= site.line <= (node.end_lineno or node.lineno):
            parts = {
                one.value.id for one in node.args if isinstance(one, ast.Subscript) and isinstance(one.value, ast.Name)
            }
            called = (one for one in node.args if isinstance(one, ast.Call))
            if any(isinstance(given, ast.Name) and given.id in parts for one in called for given in one.args):
                return True
    return False


def reads_end(trial: Trial, path: Path) -> bool:
    """Return True if the result of a copy depends on the last column.

    Raises:
        Refused: the copy cannot be called.
    """
    value = trial.call.tensors(trial.scene.torch)[path]
    other = value.clone()
    other[:, -1] = other[:, -1].roll(1)
    plain = trial.run(_SEED)
    changed = trial.run(_SEED, trial.call.replaced({path: other}))
    return any(one.shape == two.shape and bool((one != two).any()) for one, two in zip(plain, changed, strict=True))
