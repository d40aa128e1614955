"""The model of one file, built once and queried by all rules."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass, field

from truestep.syntax.flow import Flow
from truestep.syntax.kinds import Kind, Kinds, of_name
from truestep.syntax.loops import Loops
from truestep.syntax.models import Models
from truestep.syntax.names import dotted
from truestep.syntax.places import Binding, Call, Context, Loop, Scope
from truestep.syntax.reader import Reader
from truestep.syntax.values import Values
from truestep.syntax.wrappers import Wrappers

_OF_MODULES = {
    "forward", "train", "eval", "to", "cuda", "cpu", "parameters", "named_parameters", "modules", "named_modules",
    "children", "named_children", "state_dict", "load_state_dict", "apply", "requires_grad_", "zero_grad", "half",
    "float", "double", "bfloat16", "compile", "register_buffer", "extra_repr", "buffers", "named_buffers",
}  # fmt: skip
"""Methods that every module has."""


@dataclass(eq=False)
class Program:
    """One file of Python code.

    Args:
        text: the code.
        tree: its syntax.

    Raises:
        RecursionError: the tree is nested too deeply.
    """

    text: str
    tree: ast.Module
    scopes: list[Scope] = field(init=False)
    calls: list[Call] = field(init=False)
    """In the order of their evaluation within a scope."""
    imports: dict[str, str] = field(init=False)
    bare: list[tuple[ast.Attribute, Context, int]] = field(init=False)
    """Statements that only name an attribute, such as a method without its parentheses, each with context and order."""

    def __post_init__(self) -> None:
        reader = Reader(self.tree)
        self.reader = reader
        self.module = reader.module
        self.scopes = reader.scopes
        self.calls = reader.calls
        self.imports = reader.imports
        self.bare = reader.bare
        self._named: dict[str, list[Call]] = {}
        self._methods: dict[str, list[Call]] = {}
        self._starting: dict[str, list[Call]] = {}
        self.call_at: dict[ast.AST, Call] = {}
        for call in self.calls:
            self.call_at[call.node] = call
            self._methods.setdefault(call.method, []).append(call)
            if call.name:
                self._named.setdefault(call.name, []).append(call)
        self._calls_of: dict[Scope, list[Call]] | None = None
        self.values = Values(self)
        self.kinds = Kinds(self)
        self.models = Models(self)
        self.wrappers = Wrappers(self)
        self.flow = Flow(self)
        self.roles = Loops(self)

    @classmethod
    def from_text(cls, text: str) -> Program:
        """Return the model of a text.

        Raises:
            SyntaxError: the text is not Python.
            ValueError: it contains null bytes.
            RecursionError: it is nested too deeply.

        >>> program = Program.from_text("import torch.nn.functional as F; F.dropout(x)")
        >>> [call.name for call in program.calls]
        ['torch.nn.functional.dropout']
        """
        return cls(text, ast.parse(text))

    def close(self) -> None:
        """Drop all that was read: the model refers to itself, and would else wait for the collector of cycles."""
        for scope in self.scopes:
            scope.parent = None
            for held in (scope.bindings, scope.calls, scope.loops, scope.returns):
                if held:
                    held.clear()
        self.__dict__.clear()

    # Indexes

    def named(self, *names: str) -> list[Call]:
        """Return the calls of functions by their qualified names."""
        found = [call for name in names for call in self._named.get(name, ())]
        return found if len(names) == 1 else sorted(found, key=lambda call: call.order)

    def starting(self, prefix: str) -> list[Call]:
        """Return the calls of functions with a qualified name that begins with a text, in their order."""
        known = self._starting.get(prefix)
        if known is None:
            names = {name for name in self._named if name.startswith(prefix)}
            known = [call for call in self.calls if call.name in names] if names else []
            self._starting[prefix] = known
        return known

    @functools.cached_property
    def optimizers(self) -> list[Call]:
        """Return the constructions of the optimizers of torch."""
        made = self.starting("torch.optim.")
        return [call for call in made if call.name.count(".") == 2 and call.method[:1].isupper()]

    @functools.cached_property
    def of_objects(self) -> list[tuple[Call, ast.expr]]:
        """Return the calls with arguments of what is not imported, with the expression that made the called object."""
        kinds = (ast.Name, ast.Attribute, ast.Call)
        calls = [call for call in self.calls if not call.name and call.node.args and type(call.node.func) in kinds]
        return [(call, self.values.origin(call.node.func, call.context, call.order)[0]) for call in calls]

    @functools.cached_property
    def attributes(self) -> list[tuple[str, Scope, list[Binding]]]:
        """Return the assignments to attributes, such as "layer.weight", with their functions."""
        return [(key, scope, ones) for scope in self.scopes for key, ones in scope.bindings.items() if "." in key]

    def method(self, *names: str) -> list[Call]:
        """Return the calls by the last part of the function's name, for any object."""
        return [call for name in names for call in self._methods.get(name, ())]

    def names(self) -> Iterator[str]:
        """Yield the qualified names that are called."""
        return iter(self._named)

    def methods_called(self) -> Iterator[str]:
        """Yield the last parts of the names of all functions that are called."""
        return iter(self._methods)

    @functools.cached_property
    def loops(self) -> list[Loop]:
        return [loop for scope in self.scopes for loop in scope.loops]

    def functions(self) -> Iterator[Scope]:
        return (scope for scope in self.scopes if scope.kind == "function")

    def classes(self) -> Iterator[Scope]:
        return (scope for scope in self.scopes if scope.kind == "class")

    def inside(self, place: Scope) -> list[Scope]:
        """Return the functions inside a class or a function, at any depth, without those of inner classes."""
        return self._inside.get(place, [])

    @functools.cached_property
    def _inside(self) -> dict[Scope, list[Scope]]:
        found: dict[Scope, list[Scope]] = {}
        for scope in self.scopes:
            if scope.kind in ("function", "lambda"):
                above = scope.parent
                while above is not None:
                    found.setdefault(above, []).append(scope)
                    above = None if above.kind == "class" else above.parent
        return found

    def mentions(self, name: str) -> bool:
        """Return True if a name or an argument contains a text, other than as a method that is called."""
        return name.strip(".") in self.text and name in self._words

    @functools.cached_property
    def _words(self) -> str:
        """Return all names and arguments, one per line."""
        found = {key for scope in self.scopes for key in (*scope.loads, *scope.bindings)}
        found |= {word.arg for call in self.calls for word in call.node.keywords if word.arg is not None}
        return "\n".join(found)

    # Classes and functions of this file

    def lineage(self, owner: Scope) -> list[Scope]:
        """Return a class and its bases that are defined in this file."""
        found = [owner]
        for place in found:
            node = place.node
            assert isinstance(node, ast.ClassDef)
            for base in node.bases:
                known = self.definition(dotted(base), place.parent or self.module)
                if known is not None and known.kind == "class" and known not in found:
                    found.append(known)
            if len(found) > 20:
                break
        return found

    def bases(self, owner: Scope) -> list[str]:
        """Return the qualified names of the bases of a class, and of its bases in this file, that are elsewhere."""
        found = []
        for place in self.lineage(owner):
            assert isinstance(place.node, ast.ClassDef)
            for base in place.node.bases:
                head = base.value if isinstance(base, ast.Subscript) else base
                if self.definition(dotted(head), place.parent or self.module) is None:
                    found.append(self.reader.qualified(head, place.parent or self.module) or dotted(head))
        return found

    def definition(self, name: str, scope: Scope) -> Scope | None:
        """Return the function or class of this file that a plain name means in a scope."""
        if not name or "." in name:
            return None
        place: Scope | None = scope
        while place is not None:
            if place.kind != "class" or place is scope:
                if name in place.inner:
                    bindings = place.bindings.get(name, ())
                    return place.inner[name] if len(bindings) == 1 else None
                if name in place.bindings:
                    return None
            place = place.parent
        return None

    def methods(self, owner: Scope, name: str) -> Scope | None:
        """Return the method of a class of this file, also from its bases in this file."""
        for place in self.lineage(owner):
            if name in place.inner and place.inner[name].kind == "function":
                return place.inner[name]
        return None

    def resolve(self, call: Call) -> Scope | None:
        """Return the function of this file that a call runs: a function, a method, or the `__init__` of a class."""
        function = call.node.func
        if isinstance(function, ast.Name):
            found = self.definition(function.id, call.scope)
            if found is not None and found.kind == "class":
                return self.methods(found, "__init__")
            return found
        if not isinstance(function, ast.Attribute):
            return None
        owner = self.instance(function.value, call.context, call.order)
        return None if owner is None else self.methods(owner, function.attr)

    def instance(self, node: ast.expr, context: Context, order: int) -> Scope | None:
        """Return the class of this file of which an expression is an object."""
        if isinstance(node, ast.Name) and node.id in ("self", "cls"):
            return context.scope.owner
        found, where, _ = self.values.origin(node, context, order)
        if isinstance(found, ast.Call):
            made = self.definition(dotted(found.func), where.scope)
            return made if made is not None and made.kind == "class" else None
        return self._of_parameter(found.id, where.scope) if isinstance(found, ast.Name) else None

    def _of_parameter(self, name: str, scope: Scope) -> Scope | None:
        """Return the only class of modules of this file with the methods that are called on a parameter."""
        if [one.how for one in scope.bindings.get(name, ())] != ["parameter"] or of_name(name) is not Kind.MODEL:
            return None
        called = {call.method for call in scope.calls if call.key == name} - _OF_MODULES
        if not called:
            return None
        owners = [one for one in self.classes() if any(place in one.inner for place in called)]
        return owners[0] if len(owners) == 1 and self.models.is_model(owners[0]) else None

    def calls_of(self, function: Scope) -> list[Call]:
        """Return the calls of a function of this file."""
        if self._calls_of is None:
            self._calls_of = {}  # a call that needs this map itself is not resolved
            found: dict[Scope, list[Call]] = {}
            methods = {scope.node.name for scope in self.functions() if isinstance(scope.node, ast.FunctionDef)}
            for call in self.calls:
                if call.method in methods or isinstance(call.node.func, ast.Name):
                    target = self.resolve(call)
                    if target is not None:
                        found.setdefault(target, []).append(call)
            self._calls_of = found
        return self._calls_of.get(function, [])
