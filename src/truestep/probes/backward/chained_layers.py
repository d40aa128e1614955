"""Find linear layers that follow one another on the tape without a nonlinear operation between them."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, NamedTuple

from truestep.events import LayersJoined, Site
from truestep.probes.context.scene import Scene
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
_NORMS = {"NativeBatchNormBackward0", "CudnnBatchNormBackward0", "MkldnnBatchNormBackward0"}
_DIVIDING = ("Split", "Chunk", "Unbind", "Select", "Slice")
_NUMBER = re.compile(r"\d+")


class _Layer(NamedTuple):
    held: Held
    outputs: int
    inputs: int
    kernel: tuple[int, ...]
    given: Any
    """Operation that made its input; None without a gradient."""


def look_for_chains(scene: Scene, root: Any, site: Site | None) -> None:
    """Emit each pair of linear layers of one part of a model that is one linear layer.

    The first of the two has no other use, both have a gradient, and there are at least as many units between them as
    the smaller of their ends: fewer are a bottleneck, which one layer has not.
    """
    uses: Counter[Any] = Counter([root])
    above: dict[Any, list[Any]] = {}
    queue, products = [root], []
    while queue and len(uses) < _MOST_NODES:
        node = queue.pop()
        if node.name() in _PRODUCTS:
            products.append(node)
        for following, _ in node.next_functions:
            if following is None:
                continue
            uses[following] += 1
            above.setdefault(following, []).append(node)
            if uses[following] == 1:
                queue.append(following)
    for node in products:
        second = _layer(scene, node)
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
        return _Layer(held, shape[0], shape[1], shape[2:], given)
    outputs, inputs = shape if turned else shape[::-1]
    return _Layer(held, outputs, inputs, (), given)


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


def _is_divided(node: Any, above: dict[Any, list[Any]], uses: Counter[Any]) -> bool:
    """Return True if parts of a result are used: queries and keys, a value and its gate, which meet in a product."""
    queue, parts = [node], 0
    for _ in range(_MOST_BETWEEN):
        if not queue:
            break
        for user in above.get(queue.pop(), ()):
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
