"""Parameter groups for an optimizer, with weight decay and lr by part of the model."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from torch import nn
from torch.nn.parameter import is_lazy

from truestep.errors import BadPart, BadSettings
from truestep.model.depth import depths
from truestep.model.names import all_names, selected

_NORMS = (
    nn.modules.batchnorm._NormBase,
    nn.LayerNorm,
    nn.GroupNorm,
    nn.RMSNorm,
)
_TAKEN = {"params", "name"}


def parameter_groups(
    model: nn.Module,
    *,
    lr: float | None = None,
    weight_decay: float | None = None,
    no_decay: Iterable[str] = (),
    decay_embeddings: bool = True,
    overrides: Mapping[str, Mapping[str, Any]] | None = None,
    layer_decay: float | None = None,
    layers: str | None = None,
) -> list[dict[str, Any]]:
    """Return the parameters of a model in groups, for any optimizer of torch.

    Parameters that weight decay does not help have none: those of at most one dimension (biases, scales, gates),
    everything named "bias", the parameters of norm layers, and the names returned by the model's `no_weight_decay()`
    (as in timm). Embeddings decay, as in nanoGPT and Transformers, unless `decay_embeddings` is False.

    A tied or shared parameter is in one group, once; a pattern matches it by any of its names. Frozen parameters are in
    groups too: an optimizer skips parameters without a gradient, and trains them once they are unfrozen.

    Args:
        model: any module.
        lr: the lr of every group; None takes that of the optimizer.
        weight_decay: weight decay of parameters that decay; None takes that of the optimizer. The others have 0.
        no_decay: patterns of further names without decay. A pattern matches the name of a parameter or of a module
            around it: "*.pos_embed", "head", "encoder.layers.[0-3].*".
        decay_embeddings: True if the tables of `nn.Embedding` and `nn.EmbeddingBag` decay.
        overrides: options of single parts by pattern, such as `{"head.*": {"lr": 1e-3}}`; the last match counts. A
            `weight_decay` here applies to its parameters that decay; an lr is used without `layer_decay`.
        layer_decay: the lr of each layer as a fraction of that of the layer after it, in (0, 1]; needs `lr`. The head
            has `lr`, the layer before it `lr * layer_decay`, and so on down to the embeddings.
        layers: name of the stack of layers for `layer_decay`; may be left out if it is unambiguous.

    Returns:
        Dicts with "params", "name", and "lr" and "weight_decay" if they are set; one group per combination of options.

    Raises:
        BadPart: a pattern matches nothing, the model has no parameters, or the stack of layers is ambiguous.
        BadSettings: a number is out of range, or `layer_decay` without `lr`.

    Sources: Loshchilov and Hutter (arXiv:1711.05101); layer-wise lr: ELECTRA (arXiv:2003.10555), counted as in BEiT.

    Example:
        >>> model = nn.Sequential(nn.Linear(2, 8), nn.LayerNorm(8), nn.Linear(8, 1))
        >>> for group in parameter_groups(model, weight_decay=0.1, overrides={"2": {"lr": 1e-3}}):
        ...     print(group["name"], len(group["params"]), group.get("lr"), group["weight_decay"])
        decay 1 None 0.1
        no_decay 3 None 0.0
        2 1 0.001 0.1
        2 no_decay 1 0.001 0.0
    """
    overrides = {} if overrides is None else overrides
    _check(lr, weight_decay, overrides, layer_decay)
    own = _made(model)
    flat = _flat(model, own, no_decay, decay_embeddings)
    scales = _scales(model, layer_decay, layers)
    pattern_of, _ = selected(model, overrides)
    plain = {name: value for name, value in (("lr", lr), ("weight_decay", weight_decay)) if value is not None}
    groups: dict[str, dict[str, Any]] = {}
    for parameter in own:
        pattern = pattern_of.get(parameter)
        name, options = _options(pattern, plain, overrides.get(pattern or "", {}), scales.get(parameter))
        if parameter in flat:
            options["weight_decay"] = 0.0
        called = " ".join([*name, "no_decay"] if parameter in flat else name or ["decay"])
        groups.setdefault(called, {"params": [], "name": called, **options})["params"].append(parameter)
    return list(groups.values())


def _options(
    pattern: str | None, plain: Mapping[str, Any], special: Mapping[str, Any], scale: tuple[str, float] | None
) -> tuple[list[str], dict[str, Any]]:
    """Return the parts of a group's name, and the group's options."""
    name, options = [] if pattern is None else [pattern], {**plain, **special}
    if scale is not None and "lr" not in special:
        name.append(scale[0])
        options["lr"] *= scale[1]
    return name, options


def _scales(model: nn.Module, layer_decay: float | None, layers: str | None) -> dict[nn.Parameter, tuple[str, float]]:
    """Return the layer of every parameter, and the factor of its lr; {} without `layer_decay`."""
    if layer_decay is None:
        return {}
    depth_of, head = depths(model, layers)
    return {
        parameter: ("head" if depth == head else f"layer {depth}", layer_decay ** (head - depth))
        for parameter, depth in depth_of.items()
    }


def _made(model: nn.Module) -> dict[nn.Parameter, list[str]]:
    """Return the parameters with their names.

    Raises:
        BadPart: the model has no parameters, or uninitialized ones of a lazy module.
    """
    own = all_names(model)
    if not own:
        raise BadPart("the model has no parameters", expected="expected at least one", remedy="make layers attributes")
    lazy = [names[0] for parameter, names in own.items() if is_lazy(parameter)]
    if lazy:
        raise BadPart(
            f"{lazy[0]} has no shape yet",
            expected="expected initialized parameters, got those of a lazy module",
            remedy="call the model on one batch before the groups are made",
        )
    return own


def _flat(
    model: nn.Module, own: dict[nn.Parameter, list[str]], no_decay: Iterable[str], decay_embeddings: bool
) -> set[nn.Parameter]:
    """Return the parameters that do not decay."""
    flat = set(selected(model, (no_decay,) if isinstance(no_decay, str) else no_decay)[0])
    listed = getattr(model, "no_weight_decay", None)
    said = set(listed()) if callable(listed) else set[str]()
    for parameter, names in own.items():
        if parameter.ndim <= 1 or any(name.rpartition(".")[2] == "bias" or name in said for name in names):
            flat.add(parameter)
    for module in model.modules():
        table = isinstance(module, nn.Embedding | nn.EmbeddingBag) and not decay_embeddings
        if table or isinstance(module, _NORMS):
            flat.update(module.parameters(recurse=False))
    return flat


def _check(
    lr: float | None,
    weight_decay: float | None,
    overrides: Mapping[str, Mapping[str, Any]],
    layer_decay: float | None,
) -> None:
    if not isinstance(overrides, Mapping):
        raise BadSettings(
            f"overrides must be a dict of options by pattern, got {overrides!r}",
            remedy='write overrides={"head.*": {"lr": 1e-3}}',
        )
    for where, options in (("", {"lr": lr, "weight_decay": weight_decay}), *overrides.items()):
        said = f' of "{where}"' if where else ""
        if not isinstance(options, Mapping) or _TAKEN & set(options):
            raise BadSettings(
                f'the options of "{where}" must be a dict without "params" and "name", got {options!r}',
                remedy=f'write {{"{where}": {{"lr": 1e-3}}}}',
            )
        for name in ("lr", "weight_decay"):
            value = options.get(name)
            if isinstance(value, bool) or (isinstance(value, int | float) and not 0 <= value < math.inf):
                raise BadSettings(
                    f"{name}{said} must be a number of at least 0, got {value!r}", remedy=f"pass {name}=0 or more"
                )
    if layer_decay is None:
        return
    if isinstance(layer_decay, bool) or not 0 < layer_decay <= 1:
        raise BadSettings(
            f"layer_decay must be a number in (0, 1], got {layer_decay!r}", remedy="pass layer_decay=0.75"
        )
    if lr is None:
        raise BadSettings(
            "layer_decay was given without lr",
            expected="expected the lr of the head, from which the others are computed",
            remedy="pass lr= to parameter_groups()",
        )
