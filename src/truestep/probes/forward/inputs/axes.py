"""Inputs of convolutions with their memory read in another order of the axes.

``reshape(-1, 3, 32, 32)`` of rows of height, width and channel raises no error. The numbers of such an image, read
again in the order in which they were stored, are smooth; those of an image, read in any other order, are not. Classes
that are stored as vectors of 0 with one 1, and viewed with the classes in front, have several or none at a position.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from truestep import source
from truestep.events import AxesRead, Site
from truestep.probes.context.scene import Scene
from truestep.probes.forward.losses.label_values import is_transformed

_DIMS = 4
_CHANNELS = (2, 3, 4)
_LEAST_SIZE = 8
_LARGEST = 1 << 20
_MOST_IMAGES = 16
_LEAST_IMAGES = 4
_LEAST_LEVELS = 32
"""Least number of different values in the images: masks and drawn patterns have few."""
_FEW = 0.2
"""Share of the images that can differ from the others, as a texture that is periodic."""
_READS = 4
"""Reads of a model, of each of its training and its evaluations."""
_LEAST_CLASSES = 3
"""Numbers of two levels can alternate."""
_MOST_CLASSES = 64
_LAST = "height, width, channel"
_FIRST = "channel, height, width"
_VIEWS = ("reshape", "view")


class Axes:
    """Emits `AxesRead`, a few times for each model.

    Args:
        scene: the scene.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._left: dict[tuple[int, bool], int] = {}
        """Model, and whether it is trained, to the number of reads that are left."""

    def look(self, model: int, module: Any, given: Any, training: bool, site: Site | None) -> None:
        """Compare the roughness of images with that of the same memory in other orders.

        Args:
            model: number of the model.
            module: the model.
            given: its first argument.
            training: whether the call is one of training.
            site: line of the call.
        """
        key = model, training
        images = _are_images(given)
        if not (images or _can_be_classes(given)) or not self._left.setdefault(key, _READS):
            return
        if not any(_is_spatial(self._scene.torch, part, given) for part in module.modules()):
            return
        with self._scene.sampling.timed(given):
            known = _classes(given)
            if known is not None or not images:
                self._left[key] -= 1
                if known is not None:
                    self._tell(model, training, given, site, classes=True, order=_LAST if known else "")
                return
            count = max(1, min(_MOST_IMAGES, _LARGEST // given[0].numel()))
            some = given.detach()[:: max(1, len(given) // count)][:count].float()
            some = some[_varied(some)]
            if len(some) < _LEAST_IMAGES or len(some.unique()) < _LEAST_LEVELS:
                return
            self._left[key] -= 1
            rough, smooth, most, order = _compared(some)
        self._tell(model, training, given, site, rough=rough, smooth=smooth, most=most, order=order)

    def _tell(self, model: int, training: bool, given: Any, site: Site | None, *, order: str, **facts: Any) -> None:
        shape = tuple(int(size) for size in given.shape[1:])
        likely = facts.get("classes") or facts["most"] > 1
        view = _view(site, shape, order) if order and likely else None
        self._scene.tell(
            AxesRead,
            model=model,
            training=training,
            samples=len(given),
            shape=shape,
            order=order,
            view=view,
            site=site,
            **facts,
        )


def _are_images(given: Any) -> bool:
    """Return True for a batch of images with several channels in front, with values that can be read."""
    shape = given.shape
    if given.dim() != _DIMS or shape[1] not in _CHANNELS or min(shape[2:]) < _LEAST_SIZE:
        return False
    return shape[0] >= _LEAST_IMAGES and not given.requires_grad and not is_transformed(given)


def _can_be_classes(given: Any) -> bool:
    """Return True for a batch with so few channels, in front of longer dimensions, that they can be classes."""
    shape = given.shape
    if (
        given.dim() not in (_DIMS - 1, _DIMS)
        or not _LEAST_CLASSES <= shape[1] <= _MOST_CLASSES
        or min(shape[2:]) < 2 * shape[1]
    ):
        return False
    return given.numel() <= _LARGEST and not given.requires_grad and not is_transformed(given)


def _classes(given: Any) -> bool | None:
    """Return True if vectors of 0 with one 1 were viewed with the classes in front; False if they are in front.

    Return None for all other values.
    """
    values = given.detach()
    if not bool(((values == 0) | (values == 1)).all()):
        return None
    if bool((values.sum(1) == 1).all()):
        return False
    one = bool((values.reshape(-1, given.shape[1]).sum(1) == 1).all())
    varied = bool((values != values[:1]).any())
    return True if one and varied else None


def _is_spatial(torch: Any, part: Any, given: Any) -> bool:
    """Return True for a convolution over neighbours, to which their order matters."""
    kind = torch.nn.Conv2d if given.dim() == _DIMS else torch.nn.Conv1d
    return isinstance(part, kind) and max(part.kernel_size) > 1 and part.in_channels == given.shape[1]


def _varied(images: Any) -> Any:
    """Return which images are not constant, and finite."""
    spread = images.flatten(1).std(1)
    return (spread > 0) & spread.isfinite()


def _compared(images: Any) -> tuple[float, float, float, str]:
    """Return the roughness of images, that of their memory in the smoother of two other orders, and this order.

    The third figure is the least ratio of both in four fifths of the images.
    """
    samples, channels, height, width = images.shape
    last = images.contiguous().view(samples, height, width, channels).permute(0, 3, 1, 2)
    first = images.permute(0, 2, 3, 1).contiguous().view(samples, channels, height, width)
    given = _roughness(images)
    others = {_LAST: _roughness(last), _FIRST: _roughness(first)}
    ratios = {order: float((given / other.clamp(min=1e-6)).quantile(_FEW)) for order, other in others.items()}
    order = max(ratios, key=lambda one: ratios[one])
    return _rounded(given.median()), _rounded(others[order].median()), _rounded(ratios[order]), order


def _roughness(images: Any) -> Any:
    """Return the mean difference of neighbours in each image, as a share of its standard deviation."""
    across = (images[..., 1:] - images[..., :-1]).abs().flatten(1).mean(1)
    down = (images[..., 1:, :] - images[..., :-1, :]).abs().flatten(1).mean(1)
    return (across + down) / 2 / images.flatten(1).std(1)


def _view(site: Site | None, shape: tuple[int, ...], order: str) -> Site | None:
    """Return the only view in the file of a call that gives images this shape, or its channels last; None in doubt."""
    tree = None if site is None else source.parsed(site.path)
    if site is None or tree is None:
        return None
    wanted = shape if order == _LAST else (*shape[1:], shape[0])
    found = [
        node for node in source.walk(tree) if isinstance(node, ast.Call) and _sizes(node)[-len(wanted) :] == wanted
    ]
    if len(found) != 1:
        return None
    node = found[0]
    end, end_column = node.end_lineno or node.lineno, node.end_col_offset or -1
    return Site(site.path, node.lineno, node.col_offset, end, end_column)


def _sizes(node: ast.Call) -> tuple[int, ...]:
    """Return the sizes that a view names; 0 for those that it computes."""
    if not isinstance(node.func, ast.Attribute) or node.func.attr not in _VIEWS:
        return ()
    return tuple(_numbers(node.args))


def _numbers(args: list[ast.expr]) -> Iterator[int]:
    for one in args:
        if isinstance(one, ast.Tuple | ast.List):
            yield from _numbers(one.elts)
        else:
            value = one.value if isinstance(one, ast.Constant) else 0
            yield value if isinstance(value, int) else 0


def _rounded(value: Any) -> float:
    return float(f"{float(value):.3g}")
