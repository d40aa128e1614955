"""Rows of embeddings that an evaluation reads and no step has trained: they have their first values.

Some values of each row are kept from the first call of training on. Weight decay multiplies untrained rows by a common
factor. Seam: calls of modules inside of a model, from the module probe.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from truestep.events import EmbeddingEvaluated, Site
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import has_values
from truestep.seams.refs import Ref

_COLUMNS = 4
_ROWS = 32, 1 << 16
"""Least and largest number of rows."""
_LOOKED = 1024
"""Rows with values that show whether they are random."""
_LARGEST = 1 << 18
_MOST = 16
"""Embeddings that are followed."""
_CALLS = 8
"""Calls of an evaluation that are read."""
_ALL, _EVERY = 8, 16
"""So many first evaluations are read, and one of so many later ones."""
_ROUNDING = 3e-5
_SIGMAS = 3.5
"""Largest distance of the statistics of first values from those of a standard normal distribution."""


@dataclass(slots=True)
class _First:
    module: Ref
    values: Any
    """Some columns of the weight at the first call."""
    read: Any
    """True for each row that was read in a sampled step of training."""
    fresh: float = 1.0
    """Share of the ids of the latest such step with a row that no earlier step had read or changed."""


class UntrainedRows:
    """Emits `EmbeddingEvaluated`; on the CPU only, so that no evaluation waits for a device.

    Args:
        scene: the scene.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._first: dict[int, _First] = {}
        self._step, self._calls, self._evaluations = -1, 0, 0

    def trained(self, module: Any, ids: Any) -> None:
        """Handle the call of an embedding in training, at a sampled step.

        Args:
            module: the embedding.
            ids: the ids of the rows, on the CPU.
        """
        ids = ids.reshape(-1).long()
        weight: Any = module.weight
        one = self._of(module)
        if one is None:
            if len(self._first) >= _MOST or not self._is_followed(module):
                return
            if not _is_random(weight.detach()[:_LOOKED]):
                return
            read = self._scene.torch.zeros(len(weight), dtype=self._scene.torch.bool)
            one = self._first[id(module)] = _First(Ref(module), weight.detach()[:, :_COLUMNS].clone(), read)
        else:
            fresh = self._unchanged(one, weight.detach()[:, :_COLUMNS])
            one.fresh = float((fresh & ~one.read)[ids].double().mean())
        one.read[ids] = True

    def begins(self) -> bool:
        """Return True if the embeddings of a call without gradients are to be read."""
        step = self._scene.sampling.step
        if not self._first or self._scene.sampling.given_up:
            return False
        if step != self._step:
            self._step, self._calls, self._evaluations = step, 0, self._evaluations + 1
        self._calls += 1
        return self._calls <= _CALLS and (self._evaluations <= _ALL or self._evaluations % _EVERY == 0)

    def evaluated(self, model: int, root: Any, module: Any, args: tuple[Any, ...], site: Site | None) -> None:
        """Handle the call of an embedding without gradients.

        Args:
            model: number of the model.
            root: the model.
            module: the embedding.
            args: arguments of its call.
            site: line of the call.
        """
        one, ids = self._of(module), args[0] if args else None
        if one is None or ids is None or not ids.is_cpu or not has_values(ids) or not 0 < ids.numel() <= _LARGEST:
            return
        if not are_rows(ids, len(one.values)):
            return
        with self._scene.sampling.timed(None):
            unchanged = self._unchanged(one, module.weight.detach()[:, :_COLUMNS])
            flat = ids.detach().reshape(-1).long()
            if module.padding_idx is not None:
                flat = flat[flat != module.padding_idx]
            untrained = flat[(unchanged & ~one.read)[flat]]
            still = float(unchanged[one.read].double().mean())
            self._scene.tell(
                EmbeddingEvaluated,
                model=model,
                name=next((name for name, part in root.named_modules() if part is module), ""),
                rows=len(one.values),
                reads=len(flat),
                untrained=len(untrained),
                different=len(untrained.unique()),
                fresh=round(one.fresh, 3),
                still=round(still, 3),
                site=site,
            )

    def _of(self, module: Any) -> _First | None:
        one = self._first.get(id(module))
        weight: Any = module.weight
        if one is None or one.module() is not module or len(one.values) != len(weight):
            return None
        return one if weight.is_cpu and has_values(weight) else None

    def _is_followed(self, module: Any) -> bool:
        weight = module.weight
        plain = (
            weight is not None
            and type(weight) is self._scene.torch.nn.Parameter
            and weight.is_cpu
            and has_values(weight)
        )
        sizes = plain and _ROWS[0] <= len(weight) <= _ROWS[1] and weight.dim() == 2 and weight.shape[1] >= _COLUMNS
        return bool(sizes and weight.requires_grad and weight.is_floating_point())

    def _unchanged(self, one: _First, now: Any) -> Any:
        """Return True for each row with its first values, or a multiple by the factor that most such rows have."""
        before = one.values
        equal = (now == before).all(1)
        length = (before * before).sum(1)
        factor = (now * before).sum(1) / length
        largest = before.abs().amax(1)
        multiple = ((now - factor[:, None] * before).abs().amax(1) <= _ROUNDING * largest) & (length > 0)
        if bool(multiple.any()):
            common = factor[multiple].median()
            multiple &= (factor - common).abs() <= _ROUNDING * common.abs()
        return equal | multiple


def are_rows(ids: Any, rows: int) -> bool:
    """Return True if a table has all the rows of an embedding's ids; others end the program right after this."""
    return int(ids.min()) >= 0 and int(ids.max()) < rows


def _is_random(values: Any) -> bool:
    """Return True for the values that an embedding gets by default: of a standard normal distribution.

    Vectors that were trained elsewhere have other statistics. Rows of zeros, for padding, are left out.
    """
    values = values[(values != 0).any(1)].double()
    count = values.numel()
    if not count or not bool(values.isfinite().all()):
        return False
    off = abs(float(values.mean())) * count**0.5, abs(float((values**2).mean()) - 1) * (count / 2) ** 0.5
    tails = abs(float((values**4).mean()) - 3) * (count / 96) ** 0.5
    return bool(max(*off, tails) <= _SIGMAS)
