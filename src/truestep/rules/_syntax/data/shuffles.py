"""Tensors and arrays that are shuffled in place, from the syntax."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from truestep.syntax import Program, Suspicion

_SHUFFLES = ("random.shuffle", "numpy.random.shuffle")
_TENSORS = frozenset(
    {
        "arange", "as_tensor", "cat", "empty", "eye", "from_numpy", "full", "linspace", "ones", "rand", "randint",
        "randn", "randperm", "stack", "tensor", "zeros",
    }
)  # fmt: skip
_TABLES = frozenset({"column_stack", "dstack", "stack", "vstack"})
"""Functions of NumPy with a result of several dimensions for arrays of one."""
_COLUMN = re.compile(r"None\]|newaxis\]|reshape\(-1, \d")
"""A part with several dimensions, of which `hstack` makes an array with several."""


def shuffle_overwrites_rows(program: Program) -> Iterator[Suspicion]:
    """Yield shuffles that exchange elements of a tensor, or rows of an array."""
    for call in program.named(*_SHUFFLES):
        if not call.node.args:
            continue
        made = program.values.origin(call.node.args[0], call.context, call.order)[0]
        maker = program.call_at.get(made)
        name = "" if maker is None else maker.name
        tensor = name.startswith("torch.") and name.count(".") == 1 and name[len("torch.") :] in _TENSORS
        table = call.name == "random.shuffle" and maker is not None and _is_table(name, maker.node)
        if tensor or table:
            yield Suspicion(
                call.node,
                f"`{call.name}` overwrites rows of {'a tensor' if tensor else 'an array'} with copies of others",
                "exchanges views, so that rows become copies of others",
                "index with `torch.randperm(len(x))`" if tensor else "use `numpy.random.default_rng().shuffle(x)`",
                ((made, "made here"),) if isinstance(made, ast.expr) and made is not call.node.args[0] else (),
            )


def _is_table(name: str, made: ast.Call) -> bool:
    """Return True if a function of NumPy makes an array with several dimensions."""
    if name == "numpy.hstack":
        return _COLUMN.search(ast.unparse(made)) is not None
    parts = made.args[0].elts if made.args and isinstance(made.args[0], ast.List | ast.Tuple) else []
    if name == "numpy.stack" and any(isinstance(part, ast.Constant) for part in parts):  # of numbers: one dimension
        return False
    return name.startswith("numpy.") and name.removeprefix("numpy.") in _TABLES
