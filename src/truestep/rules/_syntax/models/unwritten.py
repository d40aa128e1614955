"""Parameters with the memory that `torch.empty` returned, from the syntax."""

from __future__ import annotations

import ast
import builtins
import re
import sys
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from truestep.findings import Confidence
from truestep.syntax import Call, Kind, Program, Suspicion

_PARAMETER = ("torch.nn.Parameter", "torch.nn.parameter.Parameter")
_EMPTY = frozenset({"torch.empty", "torch.empty_like", "torch.empty_strided"})
_CONSTRUCTORS = frozenset({"torch.Tensor", "torch.FloatTensor", "torch.DoubleTensor", "torch.HalfTensor"})
_LEAST_SIZES = 2
"""Arguments from which on those of a constructor are sizes: a single one may be data."""
_OF_DATA = re.compile(
    r"\.data\b\s*(?:\.\w+_\(|[-+*/]?=[^=]|\[)|\w_\(\s*[\w.\[\]]+\.data\b|\.numpy\(\)\s*\[[^\]]*\]\s*[-+*/]?=[^=]"
    r"|\bout=[\w.\[\]]+\.(?:data\b|detach\()|vector_to_parameters|(?:torch|pickle|joblib)\.loads?\(|to_empty|skip_init|functional_call|make_functional"
)
"""Writes to values of parameters that no version counter counts, and models that are loaded as a whole."""
_OF_ALL = re.compile(
    r"\.apply\(|(?<!grad_norm)(?<!grad_value)_\((?!self\.)\w|load_(?:state|model|weight|checkpoint|param)|from_pretrained"
    r"|\.\w+_\(|setattr|getattr|__dict__|\b_parameters\b|\binit\w*\(|(?<!def )\b(?!super\b)\w+\(\s*self\s*[,)]"
    r"|^[ \t]*for\b[^\n]*\b(?:parameters|modules|children|state_dict)\([^\n]*:[ \t]*$",
    re.MULTILINE,
)
"""Writes to parameters in general, which a run counts."""
_NO_WRITES = re.compile(
    r"def __init__\(|super\([^)]*\)\.__init__\(|\.__init__\(|requires_grad_\(|clip_grad_(?:norm|value)_\("
)
_UPDATES = re.compile(r"\.step\(|\.grad\b")
_PARTS = re.compile(r"\.(?:named_)?(?:parameters|modules|children)\(|\.state_dict\(")
_PLAIN = sys.stdlib_module_names | {*dir(builtins), "", "numpy", "sklearn", "torch"}
"""Beginnings of names of functions that initialise nothing, or that `_OF_ALL` finds."""
_PLAIN_BASES = ("torch.nn.", "lightning.", "pytorch_lightning.")
"""Beginnings of bases that do not initialise the parameters of their subclasses."""


class Unwritten(NamedTuple):
    """A parameter that a class makes of memory."""

    owner: str
    name: str
    call: Call


def parameters_not_initialised(program: Program) -> Iterator[Suspicion]:
    """Yield parameters that nothing in the file writes to, of classes without a base in another file."""
    if "empty" not in program.text and "Tensor(" not in program.text:
        return
    trains = "backward(" in program.text and _UPDATES.search(program.text) is not None
    confidence = Confidence.HIGH if trains and not _goes_elsewhere(program) else Confidence.LOW
    for one in unwritten(program):
        if _is_replaced(one, program) or is_written(one.name, (program.text,)) or may_write_all((program.text,)):
            continue
        owner = one.call.scope.owner
        bases = [] if owner is None else program.bases(owner)
        if all(base == "object" or base.startswith(_PLAIN_BASES) for base in bases):
            yield suspicion(one, confidence)


def _goes_elsewhere(program: Program) -> bool:
    """Return True if a function of another file, or of a library, gets a model or parameters: it may write to them."""
    for call in program.calls:
        if call.name.partition(".")[0] in _PLAIN:
            continue
        for value in (*call.node.args, *(keyword.value for keyword in call.node.keywords)):
            if _PARTS.search(ast.unparse(value)) or program.kinds.is_a(value, Kind.MODEL, call.context, call.order):
                return True
    return False


def _is_replaced(one: Unwritten, program: Program) -> bool:
    """Return True if the class or other code assigns another parameter to the attribute, such as a tied one."""
    replaces = rf"\.{one.name}\s*(?::[^=\n]*)?=(?!=)(?!\s*(?:None\b|[\w.]*Parameter\())"
    return re.search(replaces, of_others(program, one.name, [one.owner])) is not None


def suspicion(one: Unwritten, confidence: Confidence = Confidence.HIGH) -> Suspicion:
    """Return the failure of a parameter."""
    return Suspicion(
        one.call.node,
        f"`{one.name}` has the values that were in memory before: nothing writes to it",
        "memory without values",
        f"initialise it: `nn.init.xavier_uniform_(self.{one.name})`, or make it by `torch.zeros` or `torch.randn`",
        confidence=confidence,
    )


def unwritten(program: Program) -> Iterator[Unwritten]:
    """Yield the parameters that the classes of a file make of memory, written later or not."""
    for call in program.named(*_PARAMETER):
        value = call.argument(0, "data")
        made = program.call_at.get(value) if isinstance(value, ast.Call) else None
        sizes = made is not None and made.name in _CONSTRUCTORS and len(made.node.args) >= _LEAST_SIZES
        if made is None or not (made.name in _EMPTY or sizes) or call.scope.owner is None:
            continue
        if any(isinstance(size, ast.Constant) and size.value == 0 for size in made.node.args):
            continue
        statement = call.statement
        targets = statement.targets if isinstance(statement, ast.Assign) and statement.value is call.node else []
        for target in targets:
            if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
                yield Unwritten(call.scope.owner.name, target.attr, call)


def is_written(name: str, texts: Iterable[str]) -> bool:
    """Return True if one of these files may write to the values of a parameter with a name."""
    own = re.compile(
        rf"\.{name}\b\s*(?:\.data\b|(?:\[[^\]]*\]\s*)?\.\w+_\(|\[[^\]]*\]\s*[-+*/]?=[^=])"
        rf"|^[ \t]*(?!self\b|super\b|print\b)[\w.]+\((?:[^()=\n]*,)?\s*(?:[\w.\[\]]+\.)?{name}\b"
        rf"|^[ \t]*for\b[^\n]*\bself\.{name}\b[^\n]*:[ \t]*$"
        rf"|\w+_\(\s*(?:[\w.\[\]]+\.)?{name}\b|(?:init|reset|fill|copy|load|set|assign|uniform|normal|xavier|kaiming|glorot|orthogonal)\w*\([^()]*\.{name}\b",
        re.MULTILINE,
    )
    return any(own.search(text) or _OF_DATA.search(text) for text in texts)


def of_others(program: Program, name: str, owners: Iterable[str]) -> str:
    """Return the text of a file without the data of other parameters, and without those of other classes."""
    lines = program.text.splitlines(keepends=True)
    own = re.compile(rf"\bself\.{name}\b(?:\.data\b)?")
    known = set(owners)
    for kind in ast.walk(program.tree):
        if isinstance(kind, ast.ClassDef) and kind.name not in known:
            for number in range(kind.lineno - 1, kind.end_lineno or 0):
                lines[number] = own.sub("other", lines[number])
    return re.sub(rf"\bself\.(?!{name}\b)\w+\.data\b", "other", "".join(lines))


def may_write_all(texts: Iterable[str]) -> bool:
    """Return True if one of these files may write to parameters of any name."""
    return any(_OF_ALL.search(_NO_WRITES.sub("", text)) for text in texts)
