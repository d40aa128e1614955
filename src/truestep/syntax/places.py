"""Places in a file: scopes, loops, calls and bindings, as `reader` finds them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

NO_GRAD = ("torch.no_grad", "torch.inference_mode")
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class Guard(NamedTuple):
    """A branch of a statement that may not run: of an `if`, a `try`, a `match`, or a conditional expression."""

    node: ast.AST
    branch: int
    """0: the condition holds; 1: it does not; other numbers: cases and handlers."""


@dataclass(slots=True, eq=False)
class Loop:
    """A `for` or `while` statement."""

    node: ast.For | ast.AsyncFor | ast.While
    scope: Scope
    parent: Loop | None
    guards: tuple[Guard, ...]
    first: int
    last: int = 0
    """Orders of the first and the last thing inside."""

    def chain(self) -> tuple[Loop, ...]:
        """Return the loops around this one in the same function, outermost first, and this one."""
        above = self.parent.chain() if self.parent is not None else ()
        return (*above, self)

    def within(self, other: Loop) -> bool:
        """Return True if this loop is the other one or inside it."""
        return self is other or (self.parent is not None and self.parent.within(other))


@dataclass(slots=True, eq=False)
class Context:
    """Surroundings of a call or a binding in its function."""

    scope: Scope
    loop: Loop | None = None
    guards: tuple[Guard, ...] = ()
    withs: tuple[Call, ...] = ()
    """Calls that made the context managers, outermost first."""
    deferred: bool = False
    """Whether it is inside a comprehension or a generator expression."""

    @property
    def without_gradients(self) -> bool:
        """Return True if gradients are off: by a context manager, or a decorator of the function."""
        return any(call.name in NO_GRAD for call in self.withs) or any(
            name in NO_GRAD for name in self.scope.decorators
        )


@dataclass(slots=True, eq=False)
class Call:
    """A call."""

    node: ast.Call
    name: str
    """Qualified name of the function, such as "torch.nn.functional.dropout"; "" if it is not imported or built in."""
    method: str
    """Last part of the name, as it is written."""
    key: str
    """Text of the object that the method belongs to, such as "self.optimizer"; "" for functions and expressions."""
    context: Context
    statement: ast.stmt
    order: int

    @property
    def scope(self) -> Scope:
        return self.context.scope

    @property
    def loop(self) -> Loop | None:
        return self.context.loop

    @property
    def receiver(self) -> ast.expr | None:
        """Return the object that the method belongs to."""
        return self.node.func.value if isinstance(self.node.func, ast.Attribute) else None

    @property
    def alone(self) -> bool:
        """Return True if the call is a statement, so that its result is dropped."""
        return isinstance(self.statement, ast.Expr) and self.statement.value is self.node

    def argument(self, position: int, *names: str) -> ast.expr | None:
        """Return an argument by its position (-1 for none) or its names; None if it is absent or inside `*args`."""
        for keyword in self.node.keywords:
            if keyword.arg in names:
                return keyword.value
        plain = self.node.args
        if 0 <= position < len(plain) and not any(isinstance(one, ast.Starred) for one in plain[: position + 1]):
            return plain[position]
        return None

    @property
    def unpacks(self) -> bool:
        """Return True if some arguments come from `*` or `**`."""
        return any(isinstance(one, ast.Starred) for one in self.node.args) or any(
            keyword.arg is None for keyword in self.node.keywords
        )

    def arguments(self) -> Iterator[ast.expr]:
        yield from self.node.args
        for keyword in self.node.keywords:
            yield keyword.value


@dataclass(slots=True, eq=False)
class Binding:
    """An assignment to a name, an attribute or an element."""

    key: str
    """Text of the target; that of an element ends with "[]"."""
    value: ast.expr | None
    """The assigned expression; None if there is none, as for a parameter."""
    how: Literal["=", "augmented", "for", "with", "parameter", "import", "definition", "del"]
    node: ast.AST
    context: Context
    order: int
    index: tuple[int, ...] = ()
    """Position in the tuple that the value is."""
    operator: str = ""
    """For "augmented": the class of the operator, such as "Add"."""


@dataclass(slots=True, eq=False)
class Scope:
    """A module, a class, a function or a lambda expression."""

    node: ast.Module | ast.ClassDef | Function
    kind: Literal["module", "class", "function", "lambda"]
    name: str
    """Name with those of the scopes around it, such as "Trainer.fit"."""
    parent: Scope | None
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    loads: dict[str, list[tuple[int, ast.expr]]] = field(default_factory=dict)
    """Texts of the names and chains of attributes that are read, with order and node."""
    loops: list[Loop] = field(default_factory=list)
    returns: list[tuple[ast.expr, Context, int]] = field(default_factory=list)
    """Values of `return` and `yield` statements."""
    inner: dict[str, Scope] = field(default_factory=dict)
    """Functions and classes that are defined in it."""
    decorators: tuple[str, ...] = ()
    globals: set[str] = field(default_factory=set)

    @property
    def owner(self) -> Scope | None:
        """Return the class of a method, also for functions inside the method."""
        place = self.parent
        while place is not None and place.kind != "class":
            place = place.parent
        return place

    @property
    def parameters(self) -> tuple[str, ...]:
        """Return the names of the parameters that can be passed by position, then those by name."""
        if isinstance(self.node, ast.Module | ast.ClassDef):
            return ()
        given = self.node.args
        return tuple(one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs))

    def default(self, parameter: str) -> ast.expr | None:
        """Return the default of a parameter; None if it has none."""
        if isinstance(self.node, ast.Module | ast.ClassDef):
            return None
        given = self.node.args
        plain = [one.arg for one in (*given.posonlyargs, *given.args)]
        pairs = [*zip(reversed(plain), reversed(given.defaults), strict=False)]
        pairs += [(one.arg, value) for one, value in zip(given.kwonlyargs, given.kw_defaults, strict=True) if value]
        return dict(pairs).get(parameter)

    def within(self, other: Scope) -> bool:
        """Return True if this scope is the other one or inside it."""
        place: Scope | None = self
        while place is not None and place is not other:
            place = place.parent
        return place is other
