"""Entropies of a policy in the loss of its policy gradient, by the tape.

The entropy of shares is the sum of p * log(p) with a minus before it, that of a normal distribution is the logarithm of
its deviation plus a constant. It is of the policy if both come from the outputs that the log-probabilities of actions
come from. An entropy that a loss compares with a number, or that another term makes larger, is small on purpose.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from truestep.probes.backward.origin import shape_of
from truestep.probes.context.values import has_values, saved
from truestep.probes.forward.losses.advantages import logarithm
from truestep.probes.forward.losses.followed_targets import kind_of

_LEAF = "torch::autograd::AccumulateGrad"
_SUMS = frozenset({"Add", "Sub", "Rsub"})
_JOINED = frozenset({"Stack", "Cat"})
_SAME = frozenset({
    "Mean", "Sum", "Squeeze", "Unsqueeze", "View", "UnsafeView", "ReshapeAlias", "Clone", "Alias", "ToCopy", "Expand",
    "Select", "Slice", "Index", "IndexSelect", "MaskedSelect", "Unbind", "Transpose", "T", "Permute",
})  # fmt: skip
"""Operations that keep the sign of a term."""
_OF_RATIOS = frozenset({"Minimum", "Maximum", "Min", "Max", "Clamp", "Where"})
_BOUNDS = frozenset({"Clamp", "ClampMin", "ClampMax"})
_SHARES = frozenset({"Softmax", "Exp", "Div", "Sigmoid"})
_ENTROPIES = frozenset({"SpecialEntr", "BinaryCrossEntropyWithLogits"})
_OF_OUTPUTS = _SUMS | _JOINED | _SAME | _OF_RATIOS | _BOUNDS | _ENTROPIES | {
    "Neg", "Mul", "Div", "Exp", "Log", "LogSoftmax", "Softmax", "Logsumexp", "Sigmoid", "LogSigmoid", "Softplus",
    "Gather", "Pow", "Sqrt", "MaskedFill", "NllLoss", "Diagonal", "DiagEmbed", "LinalgSolveTriangular", "Xlogy", "Tanh",
}  # fmt: skip
"""Operations between an output of a layer and a log-probability, or an entropy."""
_MOST_NODES = 1 << 12
_MOST_VALUES = 1 << 20
_MOST_PRODUCTS = 8
_LEAST_KINDS, _LEAST_STEPS = 8, 3
"""Least number of different weights without one below zero, of samples and of steps."""


class _Term(NamedTuple):
    """A term of a loss.

    Attributes:
        node: operation that made it.
        sign: its sign in the loss; 0 if it is unknown.
        shifts: number of constants that were added to it.
        beside: True if it was added to a square, as in the logarithm of a normal density.
    """

    node: Any
    sign: int
    shifts: int = 0
    beside: bool = False


def minimised_entropy(root: Any) -> bool:
    """Return True if the entropy of a policy is made smaller by a loss with the policy gradient."""
    smaller, larger, weighted, single = [], False, [], []
    queue, seen = [_Term(root, 1)], 0
    while queue and seen < _MOST_NODES:
        term, seen = queue.pop(), seen + 1
        turned = _direction(term)
        if turned:
            smaller += [term.node] * (turned > 0)
            larger |= turned < 0
            continue
        node, inner = term.node, _inputs(term.node)
        if kind_of(node) == "Mul" and len(inner) == 1:
            factor = _factor(node)
            if factor is not None and _is_logarithm(inner[0]):
                if factor.numel() > 1 and _is_of_rewards(factor, inner[0]):
                    weighted.append(inner[0])
                elif factor.numel() == 1 and shape_of(inner[0]) in ((), (1,), (1, 1)):
                    single.append((inner[0], factor))
        queue += _below(term)
    if not smaller or larger:
        return False
    weighted += _alone(single)
    policy = set().union(*(_sources(one) for one in weighted[:_MOST_PRODUCTS]))
    return any(not policy.isdisjoint(_own(node)) for node in smaller)


def _below(term: _Term) -> list[_Term]:
    """Return the terms that a term is made of."""
    node, kind, inner = term.node, kind_of(term.node), _inputs(term.node)
    if kind in _SUMS and len(node.next_functions) > 1:
        signs = [-1 if (kind == "Sub" and place == 1) or (kind == "Rsub" and place == 0) else 1 for place in (0, 1)]
        parts = [(one, sign) for (one, _), sign in zip(node.next_functions, signs, strict=False) if one is not None]
        if len(parts) == 1:
            return [_Term(parts[0][0], term.sign * parts[0][1], term.shifts + 1, term.beside)]
        others = [any(_is_square(one) for one, _ in parts[:place] + parts[place + 1 :]) for place in range(len(parts))]
        return [_Term(one, term.sign * sign, 0, beside) for (one, sign), beside in zip(parts, others, strict=True)]
    if kind == "Neg":
        return [term._replace(node=inner[0], sign=-term.sign)]
    if kind in ("Mul", "Div") and len(inner) == 1:
        return [term._replace(node=inner[0], sign=term.sign * _sign_of(node))]
    if kind in _SUMS:  # of one operand and a number
        sign = -1 if kind == "Rsub" else 1
        return [_Term(one, term.sign * sign, term.shifts + 1, term.beside) for one in inner]
    if kind in _SAME | _JOINED:
        return [term._replace(node=one) for one in inner]
    return [_Term(one, 0) for one in inner] if kind in _OF_RATIOS else []


def _direction(term: _Term) -> int:
    """Return 1 if a term makes an entropy smaller, -1 if larger; 0 if it is none."""
    node, kind, inner = term.node, kind_of(term.node), _inputs(term.node)
    if not term.sign:
        return 0
    if kind == "Mul" and len(inner) == 2 and not term.shifts:
        one, two = (_behind(part, _BOUNDS) for part in inner)
        return -term.sign if any(map(_is_share_of, (one, two), (two, one))) else 0
    if kind == "Xlogy" and len(inner) == 2 and not term.shifts:
        return -term.sign
    if kind in _ENTROPIES and not term.shifts:
        return term.sign if len(inner) == (1 if kind == "SpecialEntr" else 2) else 0
    spread = kind == _LEAF or (kind == "Log" and logarithm(node, node) is None)  # not the logarithm of a share
    return term.sign if spread and term.shifts == 1 and not term.beside else 0


def _is_share_of(share: Any, log: Any) -> bool:
    """Return True for shares and their logarithms."""
    kind = kind_of(log)
    if kind_of(_behind(share, _SAME)) not in _SHARES or kind not in ("LogSoftmax", "Log", "Sub"):
        return False
    normal = kind != "Sub" or any(kind_of(_behind(one, _SAME)) == "Logsumexp" for one in _inputs(log)[1:])
    return normal and not _sources(share, with_means=False).isdisjoint(_sources(log, with_means=False))


def _is_logarithm(node: Any) -> bool:
    """Return True for log-probabilities of actions; of joined ones, the first is read."""
    node = _behind(node, _SAME | {"Neg"})
    while kind_of(node) in _JOINED and (inner := _inputs(node)):
        node = inner[0]
    return logarithm(node, node) is not None


def _own(node: Any) -> set[Any]:
    """Return the outputs that an entropy is of; without a layer, its leaves, which other entropies may share."""
    found = _sources(node, with_means=False)
    return {one for one in found if kind_of(one) != _LEAF} or found


def _sources(root: Any, *, with_means: bool = True) -> set[Any]:
    """Return the outputs of layers, and the leaves, that a log-probability or an entropy is computed from.

    Args:
        root: operation that made it.
        with_means: whether a mean is passed; the entropy of mean shares is not that of a policy.
    """
    found, seen, queue = set[Any](), {root}, [root]
    while queue and len(seen) < _MOST_NODES:
        node = queue.pop()
        kind = kind_of(node)
        if kind not in _OF_OUTPUTS or (kind == "Mean" and not with_means):
            found.add(node)
            continue
        new = [one for one in _inputs(node) if one not in seen]
        seen.update(new)
        queue += new
    return found


def _alone(single: list[tuple[Any, Any]]) -> list[Any]:
    """Return the log-probabilities of single actions, if their weights are those of rewards."""
    values = [float(factor) for _, factor in single]
    several = len(values) >= _LEAST_STEPS and (min(values) < 0 < max(values) or len(set(values)) >= _LEAST_STEPS)
    tensors = all(factor.element_size() < 8 for _, factor in single)  # a number of the program has eight bytes
    return [one for one, _ in single] if several or (len(values) == 1 and tensors) else []


def _is_of_rewards(factor: Any, log: Any) -> bool:
    """Return True for weights of both signs, or of many values if a distribution or single steps have actions.

    Others may be those of samples or classes, or a mask of labels.

    Args:
        factor: the weights.
        log: the log-probabilities.
    """
    if bool((factor < 0).any() & (factor > 0).any()):
        return True
    log = _behind(log, _SAME | {"Neg"})
    kind, inner = kind_of(log), _inputs(log)
    drawn = kind == "Exp" or (kind == "Gather" and _is_of_distribution(_behind(inner[0], _SAME)))
    return len(factor.unique()) >= (_LEAST_STEPS if kind in _JOINED else _LEAST_KINDS if drawn else _MOST_VALUES)


def _is_of_distribution(node: Any) -> bool:
    """Return True for log-probabilities as a distribution of torch computes them."""
    inner = [kind_of(one) for one in _inputs(node)]
    return (kind_of(node) == "Sub" and "Logsumexp" in inner) or (kind_of(node) == "Log" and "Clamp" in inner)


def _factor(node: Any) -> Any:
    """Return the factor without a gradient of a product; None if its values cannot be read."""
    other = 1 if node.next_functions[0][0] is not None else 0
    factor = saved(node, ("self", "other")[other])
    readable = factor is not None and hasattr(factor, "is_cpu") and factor.is_cpu and has_values(factor)
    real = readable and factor.is_floating_point() and 0 < factor.numel() <= _MOST_VALUES
    return factor.detach() if real else None


def _sign_of(node: Any) -> int:
    """Return the sign of all factors, or of all divisors; 0 if they differ, and for those that are all zero."""
    factor = saved(node, "other" if node.next_functions[0][0] is not None else "self")
    readable = factor is not None and hasattr(factor, "is_cpu") and factor.is_cpu and has_values(factor)
    if not readable or factor.requires_grad or factor.is_complex() or not 0 < factor.numel() <= _MOST_VALUES:
        return 0
    above, below = bool((factor > 0).any()), bool((factor < 0).any())
    return 0 if above == below else 1 if above else -1


def _is_square(node: Any) -> bool:
    node = _behind(node, _SAME | {"Neg", "Mul", "Div"})
    inner = _inputs(node)
    kind = kind_of(node)
    return kind == "Pow" or (kind == "Mul" and len(inner) == 2 and inner[0] is inner[1])


def _behind(node: Any, kinds: frozenset[str]) -> Any:
    """Return the operation before those of given kinds with one operand."""
    while kind_of(node) in kinds and len(inner := _inputs(node)) == 1:
        node = inner[0]
    return node


def _inputs(node: Any) -> list[Any]:
    """Return the operations that an operation has its operands with a gradient from."""
    return [following for following, _ in node.next_functions if following is not None]
