"""A function that is a model as a module: the checks of copies call it on other samples, with the weights of a call."""

from __future__ import annotations

import functools
from types import FunctionType
from typing import Any

from truestep.probes.copies.call import Call
from truestep.seams.patch import UNCOUNTED


def as_module(torch: Any, own: FunctionType, given: dict[str, Any], samples: list[str]) -> Any:
    """Return a module with the arguments of a call that are samples; None for a function with other parameters.

    Args:
        torch: the module.
        own: the function.
        given: its arguments by their names.
        samples: the names of those that are samples.
    """
    code = own.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    if not samples or set(given) != set(names):
        return None
    module = _class(torch, tuple(samples))()
    module.function, module.positional, module.names = own, code.co_argcount, names
    module.fixed = {name: value for name, value in given.items() if name not in samples}
    module.latest = Call(tuple(given[name] for name in samples), {})
    return module.eval()


@functools.lru_cache(maxsize=64)
def _class(torch: Any, samples: tuple[str, ...]) -> Any:
    """Return a class of modules with a `forward` that takes these samples."""

    class OfFunction(torch.nn.Module):  # type: ignore[misc]
        def pass_on(self, samples: dict[str, Any]) -> Any:
            values = self.fixed | samples
            args = [values[name] for name in self.names[: self.positional]]
            return self.function(*args, **{name: values[name] for name in self.names[self.positional :]})

    text = f"def forward(self, {', '.join(samples)}):\n    return self.pass_on({{"
    text += ", ".join(f"{name!r}: {name}" for name in samples) + "})\n"
    made: dict[str, Any] = {}
    exec(compile(text, UNCOUNTED, "exec"), {}, made)
    OfFunction.forward = made["forward"]
    return OfFunction
