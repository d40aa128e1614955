"""Loss functions. Seam: the C functions that only ``torch.nn.functional`` holds and looks up at each call."""

from __future__ import annotations

import functools
import sys
from contextlib import ExitStack
from typing import Any

from truestep import seams
from truestep.events import LossComputed, Site
from truestep.probes.backward.followed_losses import follow
from truestep.probes.backward.origin import made_by, softmax_over
from truestep.probes.backward.tape import is_spread, is_table_of_calls
from truestep.probes.backward.views import viewed
from truestep.probes.context.local_variables import argument
from truestep.probes.context.names import arguments
from truestep.probes.context.probe import Probe, sees
from truestep.probes.context.values import has_values
from truestep.probes.forward.losses.classes import count_classes
from truestep.probes.forward.losses.counted_targets import CountedTargets
from truestep.probes.forward.losses.label_counts import LabelCounts
from truestep.probes.forward.losses.label_values import Targets, ignored_index, is_transformed
from truestep.probes.forward.losses.own_targets import OwnTargets
from truestep.probes.forward.losses.paired_scores import score_partners
from truestep.probes.forward.losses.shares import compare_shares
from truestep.probes.forward.losses.target_range import beyond
from truestep.probes.forward.losses.target_sums import KINDS, sum_targets
from truestep.probes.forward.losses.transcripts import Transcripts
from truestep.seams.code.weaving import compiling, teach_script
from truestep.seams.divided import is_divided
from truestep.seams.patch import patch

_REGRESSION = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
_SEAMS = {
    "cross_entropy_loss": "cross_entropy",
    "nll_loss_nd": "nll_loss",
    "binary_cross_entropy": "binary_cross_entropy",
    **{name: name for name in _REGRESSION},
}
_TORCH_SEAMS = ("binary_cross_entropy_with_logits", "kl_div")
"""These C functions have no private name: ``torch.nn.functional`` looks them up in ``torch`` itself."""
_OF_CLASSES = ("cross_entropy", "nll_loss")
_OF_LOG_PROBABILITIES = ("nll_loss", "kl_div")
_REDUCTIONS = {0: "none", 1: "mean", 2: "sum"}
_REDUCED = ("mean", "sum", "batchmean")
_ROUNDING = 1e-3
_LOOKS = 3
_LARGEST = 1 << 22
_CLOSE = 32
"""Calls of a site that are examined in full; later ones are at sampled steps only."""


class LossProbe(Probe):
    """Emits `LossComputed` with shapes and the origin of the input."""

    def install(self, stack: ExitStack) -> None:
        self._latest: dict[tuple[str, int], tuple[LossComputed, int]] = {}
        """Latest event and number of calls, by kind and site."""
        self._arguments = functools.cache(arguments)
        self._looked: dict[object, int] = {}
        self._targets: dict[object, int] = {}
        """Step of the latest look at the targets, by site."""
        self._labels = Targets(self.scene)
        self._counts = LabelCounts(self.scene)
        self._own = OwnTargets(self.scene)
        self._counted = CountedTargets(self.scene)
        functions = self.scene.torch._C._nn
        for name, kind in _SEAMS.items():
            if hasattr(functions, name):
                self._replace(stack, functions, name, kind)
        for name in _TORCH_SEAMS:
            self._replace(stack, self.scene.torch, name, name)
        Transcripts(self.scene).install(stack)

    def _replace(self, stack: ExitStack, functions: Any, name: str, kind: str) -> None:
        original = getattr(functions, name)
        scene, coast, depth, me = self.scene, self.scene.coast, self.scene.depth, id(original)
        tensor = scene.torch.Tensor
        dynamo = scene.torch.compiler.is_dynamo_compiling
        compiles = compiling(scene.torch)

        @functools.wraps(original, assigned=("__name__", "__doc__"))
        def loss(input: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
            if not dynamo() and coast.on and coast.keys[coast.at] == me + frame(1).f_lasti:
                coast.at += 1
                return original(input, target, *args, **kwargs)
            if scene.active and not depth.fetching and not in_engine() and not compiles() and tracing() is None:
                try:
                    site = scene.sites.quick(2)
                    known = None if scene.sampling.on else self._latest.get((kind, id(site)))
                    if known is not None and known[1] >= _CLOSE and known[0].grad == grad_enabled():
                        scene.emit(known[0])
                        if coast.learning:
                            coast.name(me + frame(1).f_lasti)
                    elif isinstance(input, tensor) and isinstance(target, tensor):
                        scene.unseen.met(input, target)
                        self.computed(kind, site, input, target, args, kwargs)
                except Exception:
                    scene.fail()
                if of_classes and not grad_enabled():
                    value = original(input, target, *args, **kwargs)
                    self.evaluated(value, target, args, kwargs)
                    return value
            return original(input, target, *args, **kwargs)

        of_classes = kind in _OF_CLASSES
        in_engine, grad_enabled = seams.backward.engine_state(), scene.torch.is_grad_enabled
        tracing, frame = scene.torch._C._get_tracing_state, sys._getframe

        if functions is scene.torch:  # so that it can be pickled when taken from there
            loss.__module__, loss.__qualname__ = "torch", name
        patch(stack, functions, name, loss)
        teach_script(stack, original, loss)

    @sees
    def computed(
        self, kind: str, site: Site | None, input: Any, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """Emit one call; shapes and the names of two nodes are read, values only of the first small inputs."""
        scene, node, sampled = self.scene, input.grad_fn, self.scene.sampling.on
        origin = "" if node is None else node.name()
        dim = _softmax_dim(node, input) if origin == "SoftmaxBackward0" else None
        grad = scene.torch.is_grad_enabled()
        ranks = (input.dim(), target.dim())
        scene.losses.labels = int(target.shape[0]) if ranks[1] == 1 else 0
        classes = int(input.shape[1]) if ranks[0] > 1 else int(input.shape[0]) if ranks[0] else 0
        broadcast = self._broadcast(input, target) if kind in _REGRESSION else None
        sums = None
        if kind == "cross_entropy" and sampled and ranks[0] == 2 and classes > 1:
            sums = self._sums_to_one(site, input)
        blank = None
        if kind == "cross_entropy" and sampled and grad and ranks[0] == ranks[1] + 1 > 1 and classes > 1:
            blank = self._blank(site, input, target, ignored_index(args, kwargs))
        values = ""
        if kind in _OF_LOG_PROBABILITIES and sampled and ranks[0] > 1:
            values = self._values(site, input.detach().movedim(1, -1) if kind == "nll_loss" else input)
        made, over = (made_by(node), softmax_over(node, input, kind)) if grad else ("", "")
        outside = self._outside(site, made, target) if kind in _REGRESSION and made and sampled else None
        reduction = _reduction(args, kwargs)
        if kind == "kl_div" and reduction == "sum" and self._is_batch_mean():
            reduction = "batchmean"
        event = scene.event(
            LossComputed,
            kind=kind,
            site=site,
            given=self._arguments(site, ("input", "target")) if broadcast else ("input", "target"),
            input_rank=ranks[0],
            target_rank=ranks[1],
            classes=classes,
            input_from=origin,
            softmax_dim=dim,
            made_by=made,
            softmax_over=over,
            values=values,
            beyond=outside,
            sums_to_one=sums,
            broadcast=broadcast,
            viewed=viewed(node, kind, tuple(input.shape)) if sampled and grad else None,
            blank=blank,
            reduction=reduction,
            grad=grad,
        )
        latest = self._latest.get((kind, id(site)))
        self._latest[kind, id(site)] = (event, 1 if latest is None else latest[1] + 1)
        scene.emit(event)
        if sampled and grad and not (origin or input.requires_grad or target.requires_grad or is_transformed(input)):
            self._own.look(kind, site, input, target)
        if sampled and grad and node is not None and not is_transformed(input):
            follow(scene, kind, site, node)
            self._own.look(kind, site, input, target)
            score_partners(scene, kind, site, input, target)
            if scene.unread is not None:
                scene.unread.look(scene.sites.frame(2))
            if scene.ends is not None and kind in _REGRESSION and reduction in _REDUCED:
                scene.ends.compared(target, scene.sites.own(1), site)
        if grad:
            self._read_targets(kind, site, input, target, reduction, args, kwargs)
            if sampled and reduction in _REDUCED and (node is not None or target.grad_fn is not None):
                logarithms = kind == "kl_div" and any(value is True for value in (*args, *kwargs.values()))
                compare_shares(scene, kind, site, input, target, logarithms=logarithms)
        if sampled and grad and origin and scene.checks is not None and has_values(target):
            ignored = ignored_index(args, kwargs) if kind in _OF_CLASSES else None
            scene.checks.computed(kind, site, input, target, whole=reduction in ("mean", "sum"), ignored=ignored)

    @sees
    def evaluated(self, value: Any, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Hand on the result of a loss on classes without gradients."""
        if self.scene.checks is not None:
            self.scene.checks.lost(value, target, ignored_index(args, kwargs), _reduction(args, kwargs))

    def _read_targets(
        self,
        kind: str,
        site: Site | None,
        input: Any,
        target: Any,
        reduction: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        """Read the targets of a loss with gradients, by kind and reduction."""
        sampled, plain = self.scene.sampling.on, input.grad_fn is not None and not is_transformed(input)
        if plain and reduction in ("mean", "sum"):
            self._counts.look(kind, site, input, target, args, kwargs)
            if sampled and kind in _OF_CLASSES:
                count_classes(self.scene, kind, site, input, target, args, kwargs)
            if sampled and kind in KINDS and reduction == "mean":
                sum_targets(self.scene, kind, site, input, target, args, kwargs)
        # The target alone has a history where the two arguments are swapped.
        if sampled and (input.grad_fn is not None or target.grad_fn is not None) and reduction in _REDUCED:
            self._labels.look(kind, site, input, target, args, kwargs)
        if sampled and plain and kind in _OF_CLASSES and reduction == "none":
            self._counted.look(kind, site, input, target)

    def _broadcast(self, input: Any, target: Any) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """Return both shapes if the loss broadcasts them to a shape larger than either, else None.

        One may have broadcast before: for a prediction of (N, 1), a target of (N, N) is one for each pair.

        torch.nn.functional expands both before this seam, so the shapes are those of its arguments if its frame
        can be read, else those before the expansion.
        """
        if tuple(input.stride()).count(0) + tuple(target.stride()).count(0) == 0:
            return None
        given: list[Any] = [input, target]
        shapes = [_before_expansion(tensor) for tensor in given]
        caller = sys._getframe(4)
        if caller.f_globals.get("__name__") == "torch.nn.functional":
            named: list[Any] = [argument(caller, name) for name in ("input", "target")]
            if all(isinstance(tensor, self.scene.torch.Tensor) for tensor in named):
                given = named
                shapes = [tuple(int(size) for size in tensor.shape) for tensor in given]
        if shapes[0] == shapes[1]:
            return None
        wide = _count(tuple(int(size) for size in input.shape))
        larger = wide > max(_count(shape) for shape in shapes)
        pairs = list(zip(given, shapes, strict=True))
        before = not larger and (self._is_of_pairs(*pairs[0], *pairs[1]) or self._is_of_pairs(*pairs[1], *pairs[0]))
        return (shapes[0], shapes[1]) if larger or before else None

    def _is_of_pairs(self, narrow: Any, rows: tuple[int, ...], wide: Any, table: tuple[int, ...]) -> bool:
        """Return True if a computed column, or a row of results, is compared with a table of their targets.

        A table with a gradient may hold features: it must be a sum of two tensors, neither of this shape.
        """
        count = rows[0] if rows else 0
        if narrow.grad_fn is None or count < 2 or rows not in ((count,), (count, 1)):
            return False
        if table != (count, count):
            return wide.grad_fn is None and is_table_of_calls(self.scene, table, narrow.grad_fn, narrow.output_nr)
        return wide.grad_fn is None or is_spread(wide.grad_fn, table)

    def _is_batch_mean(self) -> bool:
        """Return True if ``kl_div`` will divide the sum by the size of the batch, which it does after this seam."""
        caller = sys._getframe(4)
        return (
            caller.f_globals.get("__name__") == "torch.nn.functional" and argument(caller, "reduction") == "batchmean"
        )

    def _may_look(self, key: object, tensor: Any) -> bool:
        """Return True if values may be read: at the first calls of a site, and without synchronization."""
        looks = self._looked.get(key, 0)
        if tensor.device.type != "cpu" or looks >= _LOOKS or not tensor.is_floating_point() or is_transformed(tensor):
            return False
        if is_divided(tensor):  # of a DTensor this would be a collective operation
            return False
        if not has_values(tensor):
            return False
        self._looked[key] = looks + 1
        return True

    def _outside(self, site: object, made: str, target: Any) -> int | None:
        """Return the percentage of targets outside the range of the operation before the loss; read once in a step."""
        if self._targets.get(site) == self.scene.sampling.step or not self._may_look((site, "targets"), target):
            return None
        self._targets[site] = self.scene.sampling.step
        return beyond(made, target)

    def _rows(self, site: object, input: Any) -> Any:
        """Return up to 8 rows; None if they may not be read."""
        if not self._may_look(site, input):
            return None
        return input.detach()[(0,) * (input.dim() - 2)][:8].float()

    def _blank(self, site: object, input: Any, target: Any, ignored: int) -> int | None:
        """Return the number of rows with zeros alone that count, at equal distances; None if they may not be read."""
        if not self._may_look((site, "blank"), input) or target.is_floating_point() or input.numel() > _LARGEST:
            return None
        rows = input.detach().movedim(1, -1).flatten(0, -2)
        counted = target.detach().reshape(-1) != ignored
        if len(rows) != len(counted):  # the loss is going to raise an error
            return None
        at = ((rows == 0).all(1) & counted).nonzero().flatten()
        if not 1 < len(at) <= len(rows) // 2:
            return 0
        gaps = at.diff()
        return len(at) if bool((gaps == gaps[0]).all()) else 0

    def _sums_to_one(self, site: object, input: Any) -> bool | None:
        rows = self._rows(site, input)
        if rows is None:
            return None
        return bool((rows >= 0).all()) and bool(((rows.sum(1) - 1).abs() < 1e-4).all())

    def _values(self, site: object, input: Any) -> str:
        rows = self._rows(site, input)
        if rows is None:
            return ""
        if bool((rows <= _ROUNDING).all()):
            return "log-probabilities"
        simplex = bool((rows >= 0).all()) and bool(((rows.sum(1) - 1).abs() < 1e-4).all())
        return "probabilities" if simplex else "unbounded"


def _before_expansion(tensor: Any) -> tuple[int, ...]:
    """Return a tensor's shape before ``expand``: dimensions of stride 0 had size 1."""
    shape, strides = tuple(int(s) for s in tensor.shape), tensor.stride()
    kept = [1 if stride == 0 and size > 1 else size for size, stride in zip(shape, strides, strict=True)]
    return tuple(kept)


def _count(shape: tuple[int, ...]) -> int:
    total = 1
    for size in shape:
        total *= size
    return total


def _softmax_dim(node: Any, input: Any) -> int:
    """Return the dimension of a softmax, counted from the end."""
    dim = int(node._saved_dim)
    return dim - int(input.dim()) if 0 <= dim < 1 << 32 else dim - (1 << 64)


def _reduction(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Return the reduction: the first integer after the weight, by torch's own numbering."""
    value = kwargs.get("reduction")
    if value is None:
        value = next((a for a in args if type(a) is int), 1)
    return _REDUCTIONS.get(value, "mean")
