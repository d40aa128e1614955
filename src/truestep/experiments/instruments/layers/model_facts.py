"""An inspection of a model as values for JSON."""

from __future__ import annotations

import math
from typing import Any

from truestep.debugging._visible import kind
from truestep.debugging.inspection import Call, Inspection, Layer, ParameterSeen, TensorSeen
from truestep.seams.wrappers import uncompiled_name


def model_facts(name: str, model: Any, seen: Inspection) -> dict[str, Any]:
    """Return the layers, parameters and conclusions of an inspection.

    Args:
        name: name of the model in the script.
        model: the model.
        seen: its inspection.
    """
    return {
        "name": name,
        "kind": kind(model),
        "layers": [_layer(layer) for layer in seen.layers],
        "parameters": [_parameter(one) for one in seen.parameters],
        "tied": tied(model),
        "not_called": list(seen.not_called),
        "hidden": [{"name": part.name, "why": part.why, "modules": part.modules} for part in seen.hidden],
        "first_nan": "" if seen.first_nan is None else seen.first_nan.text,
        "first_inf": "" if seen.first_inf is None else seen.first_inf.text,
        "gradients": seen.gradients,
        "not_measured": list(seen.trouble),
    }


def tied(model: Any) -> dict[str, str]:
    """Return the first names of the parameters that have another one, by the other one."""
    first: dict[int, str] = {}
    found = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        known = first.setdefault(id(parameter), name)
        if known != name:
            found[uncompiled_name(name)] = uncompiled_name(known)
    return found


def _layer(layer: Layer) -> dict[str, Any]:
    trained = [call for call in layer.calls if any(out.gradient is not None for out in call.outputs)]
    raised = [call for call in layer.calls if call.raised]
    call = (raised or trained or layer.calls)[-1]
    main = _main(call)
    found: dict[str, Any] = {
        "name": layer.name,
        "kind": layer.kind,
        "depth": layer.depth,
        "also": list(layer.also),
        "calls": len(trained or layer.calls),
        "input": call.takes,
        "output": call.gives,
        "dtype": "" if main is None else str(main.dtype).removeprefix("torch."),
        "device": "" if main is None else str(main.device),
        "trained": bool(trained),
        "raised": call.raised,
    }
    held = None if main is None else main.statistics
    values = (None,) * 3 if held is None else (held.mean, held.std, held.zeros)
    finite = held is None or held.finite
    return found | dict(zip(("mean", "std", "zeros"), values, strict=True)) | {"finite": finite}


def _main(call: Call) -> TensorSeen | None:
    """Return the largest output with values, the first one of several: that of a model which returns its loss too."""
    known = [out for out in call.outputs if out.statistics is not None]
    return max(known or call.outputs, key=lambda out: math.prod(out.shape), default=None)


def _parameter(seen: ParameterSeen) -> dict[str, Any]:
    size = math.prod(seen.shape)
    value, gradient = seen.value, seen.gradient
    return {
        "name": seen.name,
        "shape": list(seen.shape),
        "dtype": str(seen.dtype).removeprefix("torch."),
        "values": size,
        "trainable": seen.trainable,
        "reached": seen.reached,
        "norm": None if value is None else value.rms * math.sqrt(size),
        "gradient_norm": None if gradient is None else gradient.rms * math.sqrt(size),
    }
