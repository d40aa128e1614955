"""Predictions that a program collects over the batches of an evaluation, beside the targets that it compares them with.

The results of the calls are kept until the loop over the loader ends. A list that holds the same classes, or the same
numbers, as they have is that of the predictions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Any

from truestep.events import Event, ResultCompared, Site
from truestep.probes.context.local_variables import variables
from truestep.probes.context.values import has_values
from truestep.probes.evaluation.functions import ORDERED
from truestep.probes.figures.pairs import Pair, given_names, pairs_of
from truestep.probes.figures.plain import plainly_right

_LEAST = 40
_MOST = 1 << 16
"""Predictions of an evaluation."""
_MOST_CLASSES, _MOST_CELLS = 100, 256
_SAME = 1 - 1e-6
"""Correlation of numbers that are others on another scale."""
_MOST_ENDS = 32
"""Ends of loops that are read in a run."""


class Collected:
    """Reads collected predictions.

    Args:
        torch: the module.
    """

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._results: list[Any] = []
        self._targets: dict[str, list[Any]] = {}
        """Variable that the loop gives to its values beside the calls."""
        self._count = self._ends = 0
        self._call: Site | None = None
        self._model = 0

    def begin(self) -> None:
        """Begin with no results."""
        self._results, self._targets, self._count = [], {}, 0

    def called(
        self, model: int, site: Site | None, user: FrameType, result: Any, beside: Iterator[tuple[str, Any]]
    ) -> None:
        """Keep the result of a call, and the variables beside it that can be its targets."""
        rows = int(result.shape[0])
        if not result.is_cpu or result.dim() > 2 or not has_values(result) or self._ends >= _MOST_ENDS:
            return
        if result.dim() == 2 and result.shape[1] > _MOST_CLASSES:
            return
        if site != self._call:  # an evaluation before, on other samples
            self.begin()
        self._model, self._call, self._count = model, site, self._count + rows
        if self._count > _MOST:
            return
        self._results.append(result.clone())
        given = given_names(user.f_code.co_filename, _first(user))
        for name, target in beside:
            if name.partition("[")[0] in given and target.numel() == rows and target.device.type == "cpu":
                self._targets.setdefault(name, []).append(target.detach().reshape(-1).double())

    @property
    def call(self) -> tuple[int, Site | None, int]:
        """Number of the model, line of its latest call, and number of the rows of all results."""
        return self._model, self._call, self._count

    @property
    def result(self) -> Any:
        """The results of all calls."""
        return self._torch.cat(self._results)

    def lists(self, frame: FrameType) -> Iterator[tuple[str, list[Any], bool]]:
        """Yield the variables with lists of the results of all calls: parts as tensors, or numbers, and True if raw.

        Others hold probabilities, results on another scale, or classes.

        Args:
            frame: the user's frame, at the loop.
        """
        if not _LEAST <= self._count <= _MOST or len({one.shape[1:] for one in self._results}) != 1:
            return
        if self._ends >= _MOST_ENDS:
            return
        result = self.result
        names: Mapping[str, Any] = variables(frame) if _first(frame) else frame.f_globals
        for name, held in list(names.items()):
            if type(held) is not list or not 0 < len(held) <= result.numel():
                continue
            for size in {result.numel(), self._count}:
                flat = self._joined(held, size)
                if flat is None or (not (raw := self._is_raw(flat, result)) and not self._is_like(flat, result)):
                    continue
                numbers = type(held[0]) in (int, float, bool)
                parts = held if numbers else [self._torch.as_tensor(one) for one in held]
                if numbers or all(part.dim() > 0 for part in parts):
                    yield name, parts, raw

    def _is_raw(self, flat: Any, result: Any) -> bool:
        return flat.numel() == result.numel() and bool((flat.float() == result.reshape(-1).float()).all())

    def _is_like(self, flat: Any, result: Any) -> bool:
        """Return True if numbers are the results on another scale, or as probabilities, or the classes of results."""
        if flat.numel() == len(result) and self._is_made(flat, result):
            return True
        if flat.numel() != result.numel() or not bool(flat.isfinite().all()):
            return False
        plain = result.reshape(-1).double()
        for one in (plain, plain.sigmoid()):
            sides = self._torch.stack([flat, one])
            if min(sides.std(1).tolist()) > 0 and float(self._torch.corrcoef(sides)[0, 1].abs()) > _SAME:
                return True
        return False

    def passed(self, frame: FrameType, event: Callable[..., Event]) -> Iterator[Event]:
        """Yield the comparisons of collected values behind a loop, at its end.

        Args:
            frame: the user's frame, at the loop.
            event: makes an event of its kind and fields.
        """
        results, targets, count = self._results, self._targets, self._count
        self.begin()
        if not _LEAST <= count <= _MOST or len(results) < 1:
            return
        pairs = pairs_of(frame.f_code.co_filename, _first(frame))
        if not pairs or self._ends >= _MOST_ENDS or len({one.shape[1:] for one in results}) > 1:
            return
        self._ends += 1
        names: Mapping[str, Any] = variables(frame) if _first(frame) else frame.f_globals
        result = self._torch.cat(results)
        known = [self._torch.cat(parts) for parts in targets.values() if len(parts) == len(results)]
        for pair in pairs:
            found = self._judged(pair, result, known, names)
            if found:
                node = pair.node
                site = Site(
                    frame.f_code.co_filename, node.lineno, node.col_offset, node.end_lineno or 0,
                    node.end_col_offset or 0, function=frame.f_code.co_name,
                )  # fmt: skip
                yield event(
                    ResultCompared, model=self._model, samples=len(result), site=site, call=self._call, **found
                )  # fmt: skip

    def _judged(self, pair: Pair, result: Any, known: list[Any], names: Mapping[str, Any]) -> dict[str, Any]:
        """Return the facts about a pair of which one holds the predictions, the other the targets; {} for others."""
        sides = [self._joined(names.get(name), len(result)) for name in (pair.first, pair.second)]
        if sides[0] is None or sides[1] is None:
            return {}
        made = [self._is_made(side, result) for side in sides]
        if made[0] == made[1]:
            return {}
        predicted, target = sides if made[0] else sides[::-1]
        if not any(bool(self._torch.equal(target.float(), one.float())) for one in known):
            return {}
        if made[0] and pair.name in ORDERED:
            return {"how": "swapped", "name": _text(pair)}
        return self._counted(predicted, target, result)

    def _joined(self, held: Any, count: int) -> Any:
        """Return a list of numbers, of tensors or of arrays as one flat tensor; None for others."""
        torch = self._torch
        if type(held) is not list or not 0 < len(held) <= count:
            return None
        kinds = {type(one) for one in held}
        if kinds <= {int, float, bool}:
            return torch.tensor(held, dtype=torch.float64) if len(held) == count else None
        if not all(kind is torch.Tensor or kind.__module__ == "numpy" for kind in kinds):
            return None
        parts = []
        for one in held:
            if type(one) is torch.Tensor and not (one.is_cpu and has_values(one) and not one.is_complex()):
                return None
            if type(one) is not torch.Tensor and getattr(getattr(one, "dtype", None), "kind", "") not in tuple("fiub"):
                return None
            part = one.detach() if type(one) is torch.Tensor else torch.as_tensor(one.copy())
            parts.append(part.double().reshape(-1))
        flat = torch.cat(parts)
        return flat if len(flat) == count else None

    def _is_made(self, side: Any, result: Any) -> bool:
        """Return True if values are the results, the classes with the largest ones, or those above a threshold."""
        if result.dim() == 2 and result.shape[1] > 1:
            return bool((side == result.argmax(1)).all())
        flat = result.reshape(-1).double()
        same = side.float() == flat.float()
        return bool(same.all()) or any(bool((side == (flat > limit)).all()) for limit in (0, 0.5))

    def _counted(self, predicted: Any, target: Any, result: Any) -> dict[str, Any]:
        """Return the pairs of classes and predictions, and how many are equal, as `ResultCompared` has them."""
        if bool((predicted != predicted.round()).any()) or bool((target != target.round()).any()):
            return {}
        cells = Counter(zip(target.long().tolist(), predicted.long().tolist(), strict=True))
        given: Counter[int] = Counter()
        chosen: Counter[int] = Counter()
        for (label, guess), often in cells.items():
            given[label] += often
            chosen[guess] += often
        if len(given | chosen) > _MOST_CLASSES or len(cells) > _MOST_CELLS:
            return {}
        return {
            "how": "collected",
            "plain": plainly_right(result, predicted, target),
            "equal": sum(often for (label, guess), often in cells.items() if label == guess),
            "expected": sum(of * chosen[label] for label, of in given.items()) / cells.total(),
            "labels": tuple(sorted(given.items())),
            "confused": tuple(sorted((label, guess, often) for (label, guess), often in cells.items())),
        }


def _text(pair: Pair) -> str:
    return f"{pair.name}({pair.first}, {pair.second})"


def _first(frame: FrameType) -> int:
    """Return the first line of the function of a frame; 0 for a module."""
    return frame.f_code.co_firstlineno if frame.f_code.co_flags & 1 else 0
