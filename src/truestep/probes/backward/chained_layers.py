"""Linear layers on the tape that are one layer, or one of half the size.

Two follow one another without a nonlinear operation between them; or one gets a result that is joined with itself.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Any, NamedTuple

from truestep.events import InputRepeated, LayersJoined, Site
from truestep.probes.context.scene import Scene
from truestep.probes.forward.layers.columns import Columns, Users
from truestep.probes.forward.layers.joins import is_on_purpose, join_with_itself
from truestep.probes.gradients.gradient_states import Held

DROPOUT = "truestep dropout"
"""Key in the metadata of the operation of a dropout, which the tape shows as a product."""
_MOST_NODES = 5_000
_MOST_BETWEEN = 12
_LEAF = "torch::autograd::AccumulateGrad"
_PRODUCTS = {"AddmmBackward0": (1, 2), "MmBackward0": (0, 1), "ConvolutionBackward0": (0, 1)}
"""Operations of linear layers: positions of the input and of the weight among their operands."""
_SHAPING = {
    "ViewBackward0", "UnsafeViewBackward0", "ReshapeAliasBackward0", "TransposeBackward0", "PermuteBackward0",
    "TBackward0", "SqueezeBackward0", "SqueezeBackward1", "UnsqueezeBackward0", "CloneBackward0", "AliasBackward0",
    "NativeDropoutBackward0",
}  # fmt: skip
_TURNING = {"TransposeBackward0", "PermuteBackward0", "TBackward0"}
"""Operations after which another dimension may be that of the features."""
_SAME_PLACES = {"CloneBackward0", "AliasBackward0", "NativeDropoutBackward0"}
_NORMS = {"NativeBatchNormBackward0", "CudnnBatchNormBackward0", "MkldnnBatchNormBackward0"}
_DIVIDING = ("Split", "Chunk", "Unbind", "Select", "Slice")
_ON_EACH = {
    "ReluBackward0", "LeakyReluBackward0", "GeluBackward0", "SiluBackward0", "TanhBackward0", "SigmoidBackward0",
    "EluBackward0", "SoftplusBackward0", "HardtanhBackward0", "HardswishBackward0", "MishBackward0",
}  # fmt: skip
_POOLS = {
    "MaxPool2DWithIndicesBackward0", "AvgPool2DBackward0", "AdaptiveAvgPool2DBackward0", "MeanBackward1",
    "UpsampleNearest2DBackward0", "UpsampleBilinear2DBackward0",
}  # fmt: skip
_JOINS = {"CatBackward0", "StackBackward0"}
_NUMBER = re.compile(r"\d+")


class _Layer(NamedTuple):
    held: Held
    weight: Any
    turned: bool
    """True for a weight of shape (outputs, inputs)."""
    outputs: int
    inputs: int
    kernel: tuple[int, ...]
    given: Any
    """Operation that made its input; None without a gradient."""


def look_for_chains(scene: Scene, root: Any, site: Site | None, repeated: set[int], columns: Columns) -> None:
    """Emit each pair of linear layers of one part of a model that is one linear layer, and each with repeated inputs.

    The first of the two has no other use, both have a gradient, and there are at least as many units between them as
    the smaller of their ends: fewer are a bottleneck, which one layer has not.

    Args:
        scene: receives the events.
        root: the operation that made the loss.
        site: the backward pass.
        repeated: weights of the layers that had repeated inputs in an earlier pass.
        columns: compares the outputs of each layer with those that the loss reads.
    """
    uses: Counter[Any] = Counter([root])
    above: Users = {}
    queue, products = [root], []
    while queue and len(uses) < _MOST_NODES:
        node = queue.pop()
        if node.name() in _PRODUCTS:
            products.append(node)
        for following, output in node.next_functions:
            if following is None:
                continue
            uses[following] += 1
            above.setdefault(following, []).append((node, output))
            if uses[following] == 1:
                queue.append(following)
    _look_for_repeats(scene, products, site, repeated)
    for node in products:
        second = _layer(scene, node)
        if second is not None and not second.kernel:
            columns.look(node, second.held.number, second.weight, 0 if second.turned else 1, above, site)
        found = None if second is None or _is_divided(node, above, uses) else _before(second, uses)
        first = None if found is None else _layer(scene, found[0])
        if found is None or second is None or first is None or not _is_one(first, second):
            continue
        places = scene.ledger.forwarded
        at, before = (places.get(layer.held.number, ()) for layer in (second, first))
        scene.tell(
            LayersJoined,
            first=first.held.number,
            second=second.held.number,
            width=first.outputs,
            normed=found[1],
            site=at[0] if at else site,
            first_site=before[0] if before else None,
        )


def _look_for_repeats(scene: Scene, products: list[Any], site: Site | None, known: set[int]) -> None:
    """Emit each layer that gets a result joined with itself in all calls, and those that did before."""
    calls: dict[int, list[int]] = {}
    for layer in filter(None, (_layer(scene, node) for node in products)):
        calls.setdefault(layer.held.number, [layer.inputs]).append(_repeated(layer))
    for number, (inputs, *widths) in calls.items():
        width, places = min(widths), scene.ledger.forwarded.get(number, ())
        if number not in known and (not width or is_on_purpose(places)):
            continue
        known.add(number)
        place = join_with_itself(places) or (places[0] if places else site)
        scene.tell(InputRepeated, parameter=number, width=width, inputs=inputs, site=place)


def _repeated(layer: _Layer) -> int:
    """Return the number of inputs of a layer that repeat others: two parts that are one result; 0 without them."""
    node, pooled = layer.given, False
    for _ in range(_MOST_BETWEEN):
        if node is None:
            return 0
        name = node.name()
        if name in _JOINS:
            break
        shaping = name in _SAME_PLACES or (name in _SHAPING - _TURNING and not layer.kernel)
        if not shaping and name not in _ON_EACH and name not in _POOLS and DROPOUT not in node.metadata:
            return 0
        pooled |= name in _POOLS
        node = node.next_functions[0][0]
    else:
        return 0
    parts = node.next_functions
    if len(parts) != 2 or parts[0] != parts[1] or not _is_made(parts[0][0]):
        return 0
    shape = tuple(node._input_metadata[0].shape)
    along = node._saved_dim
    along = (along - (1 << 64) if along >= 1 << 63 else along) % max(1, len(shape))
    return layer.inputs // 2 if _are_inputs(layer, shape, along, pooled=pooled) else 0


def _is_made(node: Any) -> bool:
    """Return True for a result; not for a parameter, or a view of one, that fills a place, such as that of an edge."""
    for _ in range(_MOST_BETWEEN):
        if node is None or node.name() == _LEAF:
            return False
        if node.name() not in _SHAPING and not node.name().startswith(("Expand", "Repeat", *_DIVIDING)):
            return True
        node = node.next_functions[0][0]
    return False


def _are_inputs(layer: _Layer, shape: tuple[int, ...], along: int, *, pooled: bool) -> bool:
    """Return True if parts that are joined along this dimension are different inputs of a layer, not samples."""
    if not 1 <= along < len(shape):
        return False
    if layer.kernel:
        return along == 1 and len(shape) == len(layer.kernel) + 2
    if pooled:
        return shape[along] == layer.inputs and shape.count(layer.inputs) == 1
    return layer.inputs in {math.prod(shape[begin:]) for begin in range(1, along + 1)}


def _layer(scene: Scene, node: Any) -> _Layer | None:
    """Return the linear layer that an operation belongs to; None without a weight that is trained itself."""
    given, weight = (node.next_functions[position][0] for position in _PRODUCTS[node.name()])
    turned = weight is not None and weight.name() == "TBackward0"
    leaf = weight.next_functions[0][0] if turned else weight
    if leaf is None or leaf.name() != _LEAF:
        return None
    shape = tuple(leaf.variable.shape)
    held = scene.ledger.held(leaf.variable)
    if held is None or len(shape) < 2 or not _is_of_layer(held.name):
        return None
    if node.name() == "ConvolutionBackward0":
        if node._saved_transposed or node._saved_groups != 1:
            return None
        return _Layer(held, leaf.variable, True, shape[0], shape[1], shape[2:], given)
    outputs, inputs = shape if turned else shape[::-1]
    return _Layer(held, leaf.variable, turned, outputs, inputs, (), given)


def _is_of_layer(name: str) -> bool:
    """Return True for the weight of a layer, and for a tensor by itself; not for a part of a recurrent layer.

    >>> [_is_of_layer(name) for name in ("net.0.weight", "w1", "net.lstm.weight_ih_l0", "parameter 3")]
    [True, True, False, False]
    """
    last = name.rpartition(".")[2]
    return last == "weight" or ("." not in name and " " not in name)


def _before(second: _Layer, uses: Counter[Any]) -> tuple[Any, bool] | None:
    """Return the linear operation before a layer and True if a normalisation is between; None if another one is."""
    node, normed = second.given, False
    for _ in range(_MOST_BETWEEN):
        if node is None or uses[node] > 1:
            return None
        name = node.name()
        if name in _PRODUCTS:
            return node, normed
        operands = [following for following, _ in node.next_functions]
        normed |= name in _NORMS
        if name not in _SHAPING and name not in _NORMS and DROPOUT not in node.metadata and not _adds_bias(node):
            return None
        node = operands[0]
    return None


def _adds_bias(node: Any) -> bool:
    """Return True if an operation adds a trained vector."""
    operands = [following for following, _ in node.next_functions]
    if node.name() != "AddBackward0" or len(operands) != 2 or operands[1] is None or operands[1].name() != _LEAF:
        return False
    return bool(operands[1].variable.dim() <= 1)


def _is_divided(node: Any, above: Users, uses: Counter[Any]) -> bool:
    """Return True if parts of a result are used: queries and keys, a value and its gate, which meet in a product."""
    queue, parts = [node], 0
    for _ in range(_MOST_BETWEEN):
        if not queue:
            break
        for user, _ in above.get(queue.pop(), ()):
            name = user.name()
            if name.startswith(_DIVIDING):
                parts += uses[user]
            elif name in _SHAPING:
                queue.append(user)
    return parts > 1


def _is_one(first: _Layer, second: _Layer) -> bool:
    """Return True if two layers belong to the same part of a model and can be replaced by one layer."""
    if first.held is second.held or first.kernel != second.kernel or len(set(first.kernel)) > 1:
        return False
    return first.outputs >= min(first.inputs, second.outputs) and _belong(first.held.name, second.held.name)


def _belong(first: str, second: str) -> bool:
    """Return True if two weights are of the same part of a model, or of the same layer of parts that repeat.

    >>> _belong("net.body.0.weight", "net.body.2.weight"), _belong("net.blocks.0.fc.weight", "net.blocks.1.fc.weight")
    (True, True)
    >>> _belong("net.encoder.3.weight", "net.decoder.0.weight"), _belong("encoder.weight", "decoder.weight")
    (False, False)
    """
    if "." not in first and "." not in second:
        return True
    (part, _, layer), (other_part, _, other) = (name.rpartition(".")[0].rpartition(".") for name in (first, second))
    if part == other_part:
        return bool(part)
    return layer == other and not layer.isdigit() and _NUMBER.sub("#", part) == _NUMBER.sub("#", other_part)
