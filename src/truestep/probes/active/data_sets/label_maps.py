"""Label maps next to the images of the same samples: an augmentation that turns an image has to turn its map as well.

Of each image that a step is trained on, a digest of its values in their places is kept, and one that is the same in
any order. An image that comes again with the same map, and with its values in other places, is turned in each way that
a flip, a rotation or a shift can have turned it. No image is kept, and no code of the program is called.

Maps can be right for images in any position, or for upright ones: those of directions, of frequencies, of pages that a
model turns upright. So maps are classes that explain the values of the image, pixel by pixel, and explain those of the
turned one far less; and no operation that can turn an image is in the model or after it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any, NamedTuple

from truestep.events import MapsPaired, Site
from truestep.probes.active.rows.fetched import tensors_of
from truestep.probes.context.local_variables import variables
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import has_values, key_of
from truestep.probes.variables.origins import made_at
from truestep.seams.refs import Ref

_LARGEST = 1 << 22
_MOST_SAMPLES = 1 << 14
_MOST_TURNED = 8
"""Images of a step that are turned back."""
_MOST_FIELDS = 6
_LEAST_SIDE = 4
_LONGEST = 256
"""Longest side of an image that is shifted back, by each number of places."""
_MOST_NODES = 64
_FACTORS = (-7_046_029_254_386_353_131, -4_658_895_280_553_007_687)
"""Odd numbers without a pattern in their bits, as a hash of integers uses them."""
_LEAST_FIT = 0.1
"""Least share of the variance of an image that the classes of its map explain."""
_OF_FIT = 0.6
"""Largest part of that share that they explain of the turned image."""
_MOST_CLASSES = 256
"""Most classes of a map: their table has a column for each."""
_MOST_INSIDE = 2_000
_MIXING = (
    "Flip", "Rot90", "Roll", "Index", "Gather", "Take", "GridSampler", "Stack",
    "Mm", "Addmm", "Bmm", "Baddbmm", "Mv", "Addmv", "Scaled", "_Scaled", "_Trilinear", "Fft", "Sort",
)  # fmt: skip
"""Operations of a model that can turn its result."""
_KEEPING = (
    "View", "UnsafeView", "Reshape", "Alias", "Clone", "ToCopy", "Squeeze", "Unsqueeze", "Permute", "Transpose",
    "Select", "Slice", "Expand", "Sigmoid", "Softmax", "LogSoftmax", "LogSigmoid", "Softplus", "Tanh", "Relu", "Exp",
    "Log", "Clamp", "Add", "Sub", "Rsub", "Mul", "Div", "Neg", "Pow", "Mean", "Sum", "Convolution", "Upsample",
    "torch::autograd::AccumulateGrad",
)  # fmt: skip
"""Operations after a model that cannot turn its result back: of each number, views, convolutions and sums."""


class _Turn(NamedTuple):
    """A way to turn an image."""

    how: str
    dims: tuple[int, ...]
    by: int = 0

    def of(self, value: Any, first: int) -> Any:
        """Return a turned tensor. The dimensions of the image begin at ``first``."""
        dims = [first + dim for dim in self.dims]
        if self.how == "flipped":
            return value.flip(dims)
        return value.rot90(self.by, dims) if self.how == "rotated" else value.roll(self.by, dims)


@dataclass(slots=True)
class _Called:
    """A call of training on images."""

    model: int
    site: Site | None
    ref: Ref
    nodes: frozenset[Any]
    alone: bool = True
    """False if the step has another call."""


class LabelMaps:
    """Emits `MapsPaired` at sampled steps.

    Args:
        scene: the scene.
        aside: returns the context manager in which values are read.
    """

    def __init__(self, scene: Scene, aside: Any) -> None:
        self._scene = scene
        self._aside: Any = aside
        self._step = -1
        self._call: _Called | None = None
        self._known: dict[tuple[int, int], int] = {}
        """Digests of a map and of the values of its image to the digest of the image."""
        self._turned: set[int] = set()
        """Digests of the maps of turned images."""

    def drawn(self, batch: Any) -> None:
        """Note the images and maps of a batch of a loader, as they are before the program changes them."""
        scene = self._scene
        if scene.coast.on or not scene.sampling.on or scene.sampling.given_up:
            return
        fields = [value for _, value in tensors_of(scene.torch, batch) if self._is_plain(value)][:_MOST_FIELDS]
        images = [value for value in fields if value.is_floating_point()]
        for image, label in ((one, other) for one in images[:1] for other in fields if other is not one):
            sides = _sides(image, label)
            if sides:
                with self._aside(), scene.sampling.timed(None):
                    self._note(image, label, sides)

    def returned(self, model: int, site: Site | None, given: tuple[Any, ...], result: Any) -> None:
        """Note a call of training that has returned."""
        step, torch = self._scene.sampling.step, self._scene.torch
        again, self._step = step == self._step, step
        if again and self._call is not None:
            self._call.alone = False
            return
        results = result if isinstance(result, tuple | list) else (result,)
        made = [one.grad_fn for one in results if type(one) is torch.Tensor and one.grad_fn is not None]
        tensors = [value for _, value in tensors_of(torch, given)]
        image = tensors[0] if len(tensors) == 1 else None
        if image is not None and not (self._is_plain(image) and image.is_floating_point()):
            image = None
        last = frozenset(key_of(node) for node in made)
        self._call = None if image is None or image.requires_grad else _Called(model, site, Ref(image), last)

    def computed(self, site: Site | None, frame: FrameType, input: Any, target: Any) -> None:
        """Compare the images of the latest call with their maps, the targets of a loss."""
        call = self._call
        image = None if call is None or self._step != self._scene.sampling.step else call.ref()
        if call is None or image is None or not call.alone or not self._is_plain(target):
            return
        sides = _sides(image, target)
        if not sides or not _is_of_classes(target, sides) or not _is_direct(input.grad_fn, call.nodes):
            return
        with self._aside(), self._scene.sampling.timed(None):
            turned = self._note(image, target, sides)
            turned = [] if turned and _is_mixing(input.grad_fn) else turned
            made = self._made(frame, image) if turned else None
        if turned:
            self._turned |= {label for label, _ in turned}
            self._scene.tell(
                MapsPaired,
                model=call.model,
                rows=len(image),
                turned=len(turned),
                maps=len(self._turned),
                how=turned[0][1],
                site=call.site,
                loss=site,
                made=made,
            )

    def _note(self, image: Any, target: Any, sides: tuple[int, ...]) -> list[tuple[int, str]]:
        """Keep the digests of images. Return the digest of the map of each turned one, and how it was turned."""
        torch, count = self._scene.torch, len(image)
        label = target.detach().reshape(count, -1, *sides)
        image = image.detach()
        labels, values = _placed(torch, label).tolist(), _placed(torch, image).tolist()
        contents, own = _mixed(torch, image).tolist(), _mixed(torch, label).tolist()
        found: list[tuple[int, str]] = []
        for row in range(count):
            key = labels[row], contents[row]
            before = self._known.get(key)
            if before is None:
                if len(self._known) < _MOST_SAMPLES:
                    self._known[key] = values[row]
            elif before != values[row] and contents[row] != own[row] and len(found) < _MOST_TURNED:
                turn = _turn(torch, image[row : row + 1], before, sides)
                if turn is not None and self._is_of_the_other(image[row : row + 1], label[row : row + 1], turn, sides):
                    found.append((labels[row], turn.how))
        return found

    def _is_of_the_other(self, image: Any, label: Any, turn: _Turn, sides: tuple[int, ...]) -> bool:
        """Return True if the map of an image is that of the image before it was turned, not one that fits both."""
        torch, other = self._scene.torch, turn.of(label, 2)
        both = torch.unique(torch.stack([label.flatten(), other.flatten()]), dim=1)
        if len({len(torch.unique(label)), len(torch.unique(other)), both.shape[1]}) == 1:
            return False  # the same classes with other numbers, such as those of the left and of the right
        first = _first(image, sides)
        now, before = (_fit(torch, value, first, len(sides), label) for value in (image, turn.of(image, first)))
        return before >= _LEAST_FIT and now <= _OF_FIT * before

    def _made(self, frame: FrameType, image: Any) -> Site | None:
        """Return the line that makes the images."""
        for holder in self._scene.sites.users(frame):
            for name, value in variables(holder).items():
                if value is image and (site := made_at(self._scene, holder, name)) is not None:
                    return site
        return None

    def _is_plain(self, value: Any) -> bool:
        return (
            type(value) is self._scene.torch.Tensor
            and value.is_cpu
            and has_values(value)
            and value.dim() > 0
            and 1 < value.numel() <= _LARGEST
            and not value.is_complex()
            and not value.is_quantized
            and not value.requires_grad
        )


def _sides(image: Any, target: Any) -> tuple[int, ...]:
    """Return the sides of images, if a target has a number for each pixel; else nothing."""
    if image.dim() not in (3, 4, 5) or len(image) < 2:
        return ()
    shape = tuple(int(size) for size in image.shape)
    places = [shape[2:], shape[1:-1], shape[1:]]
    for sides in (one for one in places if len(one) in (2, 3) and min(one) >= _LEAST_SIDE):
        whole = (shape[0], *sides)
        if tuple(target.shape) == whole or (target.dim() == len(whole) + 1 and target.shape[2:] == sides):
            return sides if len(target) == shape[0] else ()
        if target.dim() == 1 and len(target) == math.prod(whole):
            return sides
    return ()


def _first(image: Any, sides: tuple[int, ...]) -> int:
    """Return the dimension of an image at which its sides begin."""
    return next(at for at in (2, 1) if tuple(image.shape[at : at + len(sides)]) == sides)


def _hashed(torch: Any, value: Any) -> Any:
    """Return an integer for each number, without a pattern."""
    whole = {2: torch.int16, 4: torch.int32, 8: torch.int64}
    bits = value.contiguous()
    bits = bits.view(whole[bits.element_size()]) if bits.is_floating_point() else bits
    bits = (bits.long() + 1) * _FACTORS[0]
    return (bits ^ (bits >> 29)) * _FACTORS[1]


def _mixed(torch: Any, value: Any) -> Any:
    """Return a digest of each row, which is the same for its numbers in any order."""
    codes = _hashed(torch, value.float() if value.dtype in (torch.bool, torch.uint8) else value).flatten(1)
    return (codes ^ (codes >> 32)).sum(1)


def _placed(torch: Any, value: Any) -> Any:
    """Return a digest of each row, with its numbers in their places."""
    codes = _hashed(torch, value).flatten(1)
    weights = _hashed(torch, torch.arange(codes.shape[1])) | 1
    return ((codes ^ (codes >> 32)) * weights).sum(1)


def _turn(torch: Any, image: Any, before: int, sides: tuple[int, ...]) -> _Turn | None:
    """Return the turn that brings an image back to the digest that it had before."""
    first = _first(image, sides)
    for turn in _turns(sides):
        if int(_placed(torch, turn.of(image, first))[0]) == before:
            return turn
    return None


def _turns(sides: tuple[int, ...]) -> Iterator[_Turn]:
    every = range(len(sides))
    for dim in every:
        yield _Turn("flipped", (dim,))
    yield _Turn("flipped", tuple(every))
    for one, two in ((one, two) for one in every for two in every if one < two):
        if sides[one] == sides[two]:
            yield _Turn("rotated", (one, two), 1)
            yield _Turn("rotated", (one, two), 3)
    if max(sides) <= _LONGEST and math.prod(sides) <= 1 << 16:
        for dim in every:
            yield from (_Turn("shifted", (dim,), by) for by in range(1, sides[dim]))


def _is_of_classes(target: Any, sides: tuple[int, ...]) -> bool:
    """Return True for a map of classes, or a mask of one channel."""
    if not target.is_floating_point():
        return True
    one = target.numel() == len(target) * math.prod(sides)
    return one and bool(((target == 0) | (target == 1)).all())


def _fit(torch: Any, image: Any, first: int, count: int, label: Any) -> float:
    """Return the share of the variance of an image that the classes of a map explain, in its best channel."""
    places = range(first, first + count)
    others = [at for at in range(image.dim()) if at not in places]
    values = image.double().permute(*others, *places).reshape(-1, label.shape[2:].numel())
    if label.numel() != values.shape[1]:
        return 0.0
    codes = torch.unique(label.flatten(), return_inverse=True)[1]
    if int(codes.max()) >= _MOST_CLASSES:
        return 0.0
    hot = torch.nn.functional.one_hot(codes).double()
    values = values - values.mean(1, keepdim=True)
    between = ((values @ hot).square() / hot.sum(0)).sum(1)
    return float((between / values.square().sum(1).clamp_min(1e-12)).max())


def _is_direct(node: Any, wanted: frozenset[Any]) -> bool:
    """Return True if the input of a loss is the result of a call, which no operation can have turned back."""
    if node is None:
        return False
    reached, seen, queue = False, {key_of(node)}, [node]
    while queue:
        one = queue.pop(0)
        if key_of(one) in wanted:
            reached = True
            continue
        if not str(one.name()).startswith(_KEEPING) or len(seen) > _MOST_NODES:
            return False
        for following, _ in one.next_functions:
            if following is not None and key_of(following) not in seen:
                seen.add(key_of(following))
                queue.append(following)
    return reached


def _is_mixing(node: Any) -> bool:
    """Return True if an operation that can turn images made a result, or too many operations did."""
    seen, queue = {key_of(node)}, [node]
    while queue:
        one = queue.pop()
        if str(one.name()).startswith(_MIXING) or len(seen) > _MOST_INSIDE:
            return True
        for following, _ in one.next_functions:
            if following is not None and key_of(following) not in seen:
                seen.add(key_of(following))
                queue.append(following)
    return False
