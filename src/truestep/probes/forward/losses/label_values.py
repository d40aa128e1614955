"""Values of targets: padding that counts as a class, numbers that are not probabilities. Read at sampled steps."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from truestep.events import Event, PaddingRead, ProbabilitiesRead, Site
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import has_values, saved

_LARGEST = 1 << 22
_MOST_NODES = 20_000
_MOST_ROWS = 256
_LEAST_LENGTH = 4
_LEAST_ENDED = 4
_OUTSIDE = 0.5
_PRECISION = 4


class Targets:
    """Reads the targets of losses that are averaged or summed without weights, once for each place and step."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._looked: dict[object, int] = {}
        """Step of the latest look by kind of loss and site."""
        self._without: set[object] = set()
        """Kinds and sites with inputs that do not come from an embedding with a padding index."""

    def look(
        self, kind: str, site: Site | None, input: Any, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """Examine the targets of a call and emit an event about their values."""
        scene, key = self._scene, (kind, id(site))
        divergence = kind == "kl_div"
        weight = None if divergence else args[0] if args else kwargs.get("weight")
        swapped = target.grad_fn is not None and not input.requires_grad
        if (
            weight is not None
            or self._looked.get(key) == scene.sampling.step
            or not _is_readable(scene.torch, target, swapped)
        ):
            return
        self._looked[key] = scene.sampling.step
        event: Event | None = None
        with scene.sampling.timed(target):
            if target.is_floating_point():
                own = (kind == "cross_entropy" or divergence) and input.shape == target.shape
                logarithms = divergence and any(value is True for value in (*args, *kwargs.values()))
                if own or kind == "binary_cross_entropy_with_logits":
                    event = _probabilities(scene.torch, kind, site, target, swapped, logarithms)
            elif kind in ("cross_entropy", "nll_loss") and key not in self._without:
                event = self._padding(kind, site, input, target, ignored_index(args, kwargs))
        if event is not None:
            scene.emit(event)

    def _padding(self, kind: str, site: Site | None, input: Any, target: Any, ignored: int) -> Event | None:
        if input.dim() != target.dim() + 1 or target.dim() not in (1, 2):
            return None
        embedding = embedding_behind(input.grad_fn, int(input.shape[1]))
        if embedding is None:
            labelled = label_of_padding(input.grad_fn, target.detach())
            if labelled is None:
                self._without.add((kind, id(site)))
                return None
            label, share = labelled
            share = 0 if label == ignored else share
            return PaddingRead(kind=kind, site=site, index=label, share=share, labels=True)
        index, shape = embedding
        if index == ignored:
            return PaddingRead(kind=kind, site=site, index=index)
        share, ended = padding_share(target.detach(), index, shape), follows_end(target.detach(), index, shape)
        if share and _are_constant(input.detach(), target.detach() == index):
            share = 0
        return PaddingRead(kind=kind, site=site, index=index, share=share, ended=ended)


def _are_constant(scores: Any, padding: Any) -> bool:
    """Return True if the scores of each padding target are the same for all classes: a mask has replaced them."""
    rows = scores.movedim(1, -1)[padding]
    return bool((rows == rows[:, :1]).all())


def ignored_index(args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """Return the index that a loss of classes leaves out: the integer after the reduction."""
    numbers = [number for number in (*args, *kwargs.values()) if type(number) is int]
    return numbers[1] if len(numbers) > 1 else -100


def is_transformed(tensor: Any) -> bool:
    """Return True if vmap or another transform of torch.func wraps the tensor."""
    from torch._C import _functorch

    return bool(_functorch.is_functorch_wrapped_tensor(tensor))


def _is_readable(torch: Any, tensor: Any, swapped: bool) -> bool:
    """Return True if the values of a target can be read without a trace."""
    if type(tensor) is not torch.Tensor or (tensor.requires_grad and not swapped) or is_transformed(tensor):
        return False
    return has_values(tensor) and 1 < tensor.numel() <= _LARGEST


def _probabilities(torch: Any, kind: str, site: Site | None, target: Any, swapped: bool, logarithms: bool) -> Event:
    values = target.detach()
    outside = values > 0 if logarithms else values <= -_OUTSIDE
    if kind == "binary_cross_entropy_with_logits":
        outside = outside | (values >= 1 + _OUTSIDE)
    measured = torch.stack([outside.float().mean(), (values != 0).float().mean(), *values.float().aminmax()])
    # Within a transform of torch.func the result is wrapped, and tolist() of it fails before torch 2.9.
    shares = [number.item() for number in measured] if is_transformed(measured) else measured.tolist()
    return ProbabilitiesRead(
        kind=kind,
        site=site,
        outside=round(100 * shares[0]),
        lowest=_rounded(shares[2]),
        highest=_rounded(shares[3]),
        dense=shares[1] > _OUTSIDE,
        swapped=swapped,
        logarithms=logarithms,
    )


def _rounded(value: float) -> float:
    return float(f"{value:.{_PRECISION}g}")


def embedding_behind(node: Any, classes: int) -> tuple[int, tuple[int, ...]] | None:
    """Return the padding index of an embedding on the tape with as many entries as classes, and its output's shape."""
    for current in nodes(node):
        if current.name() == "EmbeddingBackward0":
            index, entries = int(current._saved_padding_idx), int(current._saved_weight_sym_argsize_0)
            if index < entries == classes:
                return index, tuple(int(size) for size in current._input_metadata[0].shape)
    return None


def nodes(node: Any) -> Iterator[Any]:
    """Yield an operation and those before it on the tape, the nearest first."""
    seen: set[Any] = {node}
    queue = deque([node])
    while queue and len(seen) < _MOST_NODES:
        current = queue.popleft()
        yield current
        for following, _ in current.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                queue.append(following)


def label_of_padding(node: Any, target: Any) -> tuple[int, int] | None:
    """Return the label of all tokens that are padding, and their percentage; None without an embedding of such tokens.

    The labels have the shape of the tokens. Padding without one label, or elsewhere than at the ends of rows, has a
    share of 0.
    """
    for current in nodes(node):
        if current.name() != "EmbeddingBackward0":
            continue
        index, tokens = int(current._saved_padding_idx), saved(current, "indices")
        if not 0 <= index < int(current._saved_weight_sym_argsize_0) or tokens is None or tokens.dim() != 2:
            continue
        if tokens.numel() != target.numel() or (target.dim() == 2 and target.shape != tokens.shape):
            continue
        labels, padding = target.reshape(tokens.shape)[:_MOST_ROWS], tokens[:_MOST_ROWS] == index
        alike = bool(padding.any()) and labels[padding].unique().numel() == 1
        share = padding_share(tokens, index, ()) if alike else 0
        return (int(labels[padding][0]) if share else 0), share
    return None


def padding_share(target: Any, index: int, shape: tuple[int, ...]) -> int:
    """Return the percentage of targets equal to the index; 0 if it occurs elsewhere than at the ends of rows."""
    rows = _padded(target, index, shape)
    return 0 if rows is None else round(100 * float((rows == index).float().mean()))


def follows_end(target: Any, index: int, shape: tuple[int, ...]) -> bool:
    """Return True if one and the same token ends the rows before their padding: padding is not that token."""
    rows = _padded(target, index, shape)
    if rows is None:
        return False
    counts = (rows == index).sum(1)
    rows, counts = rows[counts > 0], counts[counts > 0]
    if len(rows) < _LEAST_ENDED or int(counts.max()) < 2:
        return False
    ends = rows.gather(1, rows.shape[1] - 1 - counts[:, None])
    return bool((ends == ends[0]).all()) and bool(((rows == ends[0]).sum(1) == 1).all())


def _padded(target: Any, index: int, shape: tuple[int, ...]) -> Any:
    """Return the rows of the targets, if the index occurs at their ends only; else None.

    Flattened targets have the rows, or the columns, of the output of the embedding.
    """
    count = target.numel()
    if target.dim() == 2:
        views = [target]
    else:
        views = [target.reshape(shape[0], -1)] if len(shape) == 3 and shape[0] and count % shape[0] == 0 else []
        views += [target.reshape(-1, shape[1]).t()] if len(shape) == 3 and shape[1] and count % shape[1] == 0 else []
    for rows in views:
        rows = rows[:_MOST_ROWS]
        padding = rows == index
        if min(padding.shape) < 2 or padding.shape[1] < _LEAST_LENGTH or bool(padding[:, 0].any()):
            continue
        if bool((padding[:, 1:] | ~padding[:, :-1]).all()):
            return rows
    return None
