"""Imports, assignments and classes of the names of a program, and imports that an edit needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import libcst as cst
from libcst.helpers import get_absolute_module_for_import

from truestep.fixes.editing.edits import Edits, is_text
from truestep.fixes.editing.program import Program, Uncertain, dotted, only

Assigned = cst.Assign | cst.AnnAssign


class Names:
    """The names of a program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._imports = dict(_imported(program.module))
        """Full names of imported objects by their local names."""
        self._assigned = [node for node in program.nodes if isinstance(node, Assigned)]
        self._taken = {node.value for node in program.nodes if isinstance(node, cst.Name)}

    def full(self, node: cst.BaseExpression) -> str:
        """Return the full name of an imported object: ``F.dropout`` is "torch.nn.functional.dropout"; else ""."""
        name = dotted(node)
        head, _, tail = name.partition(".")
        if head not in self._imports:
            return ""
        return f"{self._imports[head]}.{tail}" if tail else self._imports[head]

    def is_free(self, name: str) -> bool:
        """Return True if the program has no such name."""
        return name not in self._taken

    def local(self, full: str, edits: Edits) -> str:
        """Return an expression for an imported object, as this program would write it; an import is added if needed.

        Args:
            full: full name, such as "torch.no_grad".
            edits: gets the import.
        """
        best = ""
        for name, meant in self._imports.items():
            if full == meant or full.startswith(f"{meant}."):
                text = name + full[len(meant) :]
                best = min(best or text, text, key=len)
        if best:
            return best
        module = full.partition(".")[0] if full.startswith("torch.") else full.rpartition(".")[0]
        add_import(self.program, edits, module)
        return full

    def assignments(self, name: str, near: cst.CSTNode) -> list[tuple[Assigned, cst.BaseExpression]]:
        """Return the assignments that can give a name its value at a node, with the values.

        A local name is looked up in its function, then in the module. An attribute of ``self`` is looked up in the
        class. In an assignment of several names, the value is that of this name.
        """
        places: list[cst.CSTNode]
        if name.startswith("self."):
            owner = self.program.around(near, cst.ClassDef)
            places = [owner] if owner is not None else []
        else:
            places = [*(one for one in self.program.ancestors(near) if isinstance(one, cst.FunctionDef | cst.Lambda))]
            places.append(self.program.module)
        for place in places:
            if (
                not name.startswith("self.")
                and isinstance(place, cst.FunctionDef | cst.Lambda)
                and is_parameter(place, name)
            ):
                return []
            found = [
                (node, value)
                for node in self._assigned
                if (name.startswith("self.") and self.program.inside(node, place))
                or (not name.startswith("self.") and self.program.scope(node) is place)
                for value in _values(node, name)
            ]
            if found:
                return found
        return []

    def value(self, name: str, near: cst.CSTNode) -> cst.BaseExpression:
        """Return the only value that a name can have at a node.

        Raises:
            Uncertain: it has none that is known, or several.
        """
        return only(self.assignments(name, near))[1]

    def class_of(self, made: cst.BaseExpression) -> cst.ClassDef | None:
        """Return the class of this file that a call makes an object of; None for others."""
        if not isinstance(made, cst.Call) or not isinstance(made.func, cst.Name):
            return None
        name = made.func.value
        found = [node for node in self.program.nodes if isinstance(node, cst.ClassDef) and node.name.value == name]
        return found[0] if len(found) == 1 else None

    def made(self, node: cst.BaseExpression, near: cst.CSTNode) -> cst.BaseExpression:
        """Return the expression that made an object: that of its assignment for a name, else the expression itself.

        Methods that return the object itself, such as ``model.to(device)``, are looked through.
        """
        for _ in range(8):
            name = dotted(node)
            if name:
                values = self.assignments(name, near)
                if len(values) != 1:
                    return node
                node, near = values[0][1], values[0][0]
            elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value in _SAME:
                node = node.func.value
            else:
                return node
        return node


_SAME = frozenset({"to", "cuda", "cpu", "float", "double", "half", "bfloat16", "train", "eval", "requires_grad_"})


def add_import(program: Program, edits: Edits, module: str) -> None:
    """Insert an import of a module among those of the file, sorted if they are."""
    body = program.module.body
    plain: list[tuple[str, cst.Import]] = []
    last: cst.CSTNode | None = None
    for line in body:
        statements = line.body if isinstance(line, cst.SimpleStatementLine) else ()
        for one in cast("tuple[cst.BaseSmallStatement, ...]", statements):
            if isinstance(one, cst.Import):
                plain.append((dotted(cast("cst.BaseExpression", one.names[0].name)), one))
            if isinstance(one, cst.Import | cst.ImportFrom):
                last = one
    first_block = [name for name, _ in plain]
    standard = module in ("copy", "contextlib")
    text = f"import {module}"
    for name, one in plain:
        if (
            standard
            and name > module
            and first_block[: first_block.index(name) + 1] == sorted(first_block[: first_block.index(name) + 1])
        ):
            edits.insert("before", one, text)
            return
    if plain and standard:
        edits.insert("before", plain[0][1], text)
    elif last is not None:
        edits.insert("after", cast("cst.BaseSmallStatement", last), text)
    else:
        rest = [line for line in body if not (isinstance(line, cst.SimpleStatementLine) and is_text(line.body[0]))]
        if not rest:
            raise Uncertain
        first = rest[0]
        edits.insert(
            "before",
            first.body[0] if isinstance(first, cst.SimpleStatementLine) else first,
            text,
        )


def _imported(module: cst.Module) -> Iterator[tuple[str, str]]:
    for node in _walk(module):
        if isinstance(node, cst.Import):
            for alias in node.names:
                full = dotted(cast("cst.BaseExpression", alias.name))
                if alias.asname is not None:
                    yield cast("cst.Name", alias.asname.name).value, full
                else:
                    head = full.partition(".")[0]
                    yield head, head
        elif isinstance(node, cst.ImportFrom) and not isinstance(node.names, cst.ImportStar):
            source = get_absolute_module_for_import(None, node)
            for alias in node.names:
                name = cast("cst.Name", alias.name).value
                asname = cast("cst.Name", alias.asname.name).value if alias.asname is not None else name
                if source:
                    yield asname, f"{source}.{name}"


def _walk(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    yield node
    if not isinstance(node, cst.BaseExpression):
        for child in node.children:
            yield from _walk(child)


def is_parameter(function: cst.FunctionDef | cst.Lambda, name: str) -> bool:
    """Return True if a function has a parameter of this name."""
    params = function.params
    stars = [one for one in (params.star_arg, params.star_kwarg) if isinstance(one, cst.Param)]
    every = [*params.posonly_params, *params.params, *params.kwonly_params, *stars]
    return any(param.name.value == name for param in every)


def _values(node: Assigned, name: str) -> Iterator[cst.BaseExpression]:
    """Yield the values that an assignment gives to a name."""
    if isinstance(node, cst.AnnAssign):
        if node.value is not None and dotted(node.target) == name:
            yield node.value
        return
    for target in node.targets:
        if dotted(target.target) == name:
            yield node.value
        elif isinstance(target.target, cst.Tuple | cst.List):
            names = [dotted(element.value) for element in target.target.elements]
            if name in names:
                several = isinstance(node.value, cst.Tuple | cst.List) and len(node.value.elements) == len(names)
                yield cast("cst.Tuple", node.value).elements[names.index(name)].value if several else node.value
