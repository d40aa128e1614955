"""The one pass over the tree of a file that finds its scopes, loops, calls, bindings and imports."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from truestep.syntax.expressions import Expressions
from truestep.syntax.names import documented, dotted, imported
from truestep.syntax.places import Binding, Context, Guard, Loop, Scope

_LEAVES = {ast.Continue, ast.Break, ast.Return, ast.Raise}
_DEFINED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Reader(Expressions):
    """Reads a tree; afterwards the attributes hold all that was found.

    Raises:
        RecursionError: the tree is nested too deeply.
    """

    def __init__(self, tree: ast.Module) -> None:
        super().__init__(tree)
        self.imports: dict[str, str] = {}
        self.bare: list[tuple[ast.Attribute, Context, int]] = []
        self._heads: dict[tuple[Scope, str], str | None] = {}
        self._later: deque[Scope] = deque()
        self._block(tree.body)
        while self._later:  # bodies of functions run after the module around them
            scope = self._later.popleft()
            self._context = Context(scope)
            body = scope.node.body
            if isinstance(body, list):
                self._block(body)
            else:
                self._expression(body)
        self._heads.clear()  # names were looked up while the file was read
        called = any(call.method == "__import__" for call in self.calls)
        for call in self.calls:
            if call.key:
                call.name = self._named(call.key, f".{call.method}", call.scope)
            elif type(call.node.func) is ast.Name:
                call.name = self._named(call.method, "", call.scope)
            elif called:
                call.name = _of_import(call.node.func)

    def qualified(self, node: ast.expr, scope: Scope) -> str:
        """Return the qualified name of an expression; "" unless its first name is imported or built in."""
        text = dotted(node)
        if not text:
            return _of_import(node)
        return self._named(text, "", scope)

    def _named(self, text: str, rest: str, scope: Scope) -> str:
        """Return the qualified name of a chain of names, given as its first part and the rest with its dot."""
        head, dot, inner = text.partition(".")
        place = (scope, head)
        try:
            full = self._heads[place]
        except KeyError:
            full = self._heads[place] = self._head(head, scope)
        if not full:
            return "" if full is not None or dot or rest else head
        return documented(f"{full}{dot}{inner}{rest}")

    def _head(self, head: str, scope: Scope) -> str | None:
        """Return the module or object that an imported name means; "" for other names of the file, None if unbound."""
        place: Scope | None = scope
        while place is not None:
            known = place.bindings.get(head)
            if known is not None and (place.kind != "class" or place is scope):
                return self.imports[head] if all(one.how == "import" for one in known) else ""
            place = place.parent
        # A name that nothing binds comes from an import of all names; `torch` is the module then.
        return self.imports.get(head, "torch" if head == "torch" else None)

    # Statements

    def _block(self, body: Sequence[ast.stmt]) -> None:
        """Read statements; those behind an `if` that leaves the block run only in its other branch."""
        before = self._context
        for statement in body:
            self._read(statement)
            if type(statement) is ast.If:
                left, other = type(statement.body[-1]) in _LEAVES, statement.orelse
                if left != (bool(other) and type(other[-1]) in _LEAVES):
                    self._context = self._guarded(Guard(statement, 1 if left else 0))
        self._context = before

    def _read(self, node: ast.stmt) -> None:
        self._statement = node
        self._order += 1
        reader = _STATEMENTS.get(type(node))
        if reader is not None:
            reader(self, node)
            return
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self._expression(child)

    def _alone(self, node: ast.Expr) -> None:
        if type(node.value) is ast.Attribute:
            self.bare.append((node.value, self._context, self._order))
        self._expression(node.value)

    def _assign(self, node: ast.Assign) -> None:
        self._expression(node.value)
        for target in node.targets:
            self._bind(target, node.value, node)

    def _augment(self, node: ast.AugAssign) -> None:
        self._expression(node.value)
        self._expression(node.target)
        self._bind(node.target, node.value, node, "augmented", operator=type(node.op).__name__)

    def _annotated(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._expression(node.value)
            self._bind(node.target, node.value, node)

    def _if(self, node: ast.If) -> None:
        self._expression(node.test)
        self._branch(node, 0, node.body)
        self._branch(node, 1, node.orelse)

    def _for(self, node: ast.For | ast.AsyncFor) -> None:
        self._expression(node.iter)
        self._loop(node)

    def _return(self, node: ast.Return) -> None:
        if node.value is not None:
            self._expression(node.value)
            self._context.scope.returns.append((node.value, self._context, self._order))

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        for name, full in imported(node).items():
            self.imports[name] = full
            self._note(Binding(name, None, "import", node, self._context, self._order))

    def _match(self, node: ast.Match) -> None:
        self._expression(node.subject)
        for number, case in enumerate(node.cases):
            self._branch(node, number, case.body)

    def _delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if key := dotted(target):
                self._note(Binding(key, None, "del", node, self._context, self._order))

    def _outer(self, node: ast.Global | ast.Nonlocal) -> None:
        self._context.scope.globals.update(node.names)

    def _branch(self, node: ast.AST, branch: int, body: Sequence[ast.stmt]) -> None:
        if body:
            before, self._context = self._context, self._guarded(Guard(node, branch))
            self._block(body)
            self._context = before

    def _try(self, node: ast.Try | ast.TryStar) -> None:
        self._block(node.body)
        for number, handler in enumerate(node.handlers):
            if handler.name:
                self._note(Binding(handler.name, None, "with", handler, self._context, self._order))
            self._branch(node, number + 2, handler.body)
        self._block(node.orelse)
        self._block(node.finalbody)

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While) -> None:
        before = self._context
        loop = Loop(node, before.scope, before.loop, before.guards, self._order)
        before.scope.loops.append(loop)
        self._context = Context(before.scope, loop, before.guards, before.withs, before.deferred)
        if isinstance(node, ast.While):
            self._expression(node.test)
        else:
            self._bind(node.target, node.iter, node, "for")
        self._block(node.body)
        loop.last = self._order
        self._context = before
        self._block(node.orelse)

    def _with(self, node: ast.With | ast.AsyncWith) -> None:
        before = self._context
        withs = list(before.withs)
        for item in node.items:
            self._expression(item.context_expr)
            if isinstance(item.context_expr, ast.Call):
                withs.append(self.calls[-1])  # the outermost call of an expression is read last
            if item.optional_vars is not None:
                self._bind(item.optional_vars, item.context_expr, node, "with")
        self._context = Context(before.scope, before.loop, before.guards, tuple(withs), before.deferred)
        self._block(node.body)
        self._context = before

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for part in (*node.decorator_list, *node.args.defaults, *node.args.kw_defaults):
            if part is not None:
                self._expression(part)
        scope = self._define(node, "function")
        scope.decorators = tuple(text for part in node.decorator_list if (text := self._called(part)))
        self._parameters(scope, node.args)
        self._later.append(scope)

    def _called(self, node: ast.expr) -> str:
        head = node.func if isinstance(node, ast.Call) else node
        return self.qualified(head, self._context.scope) or dotted(head)

    def _class(self, node: ast.ClassDef) -> None:
        for part in (*node.decorator_list, *node.bases):
            self._expression(part)
        scope = self._define(node, "class")
        before, self._context = self._context, Context(scope)
        self._block(node.body)
        self._context = before

    def _define(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, kind: str) -> Scope:
        around = self._context.scope
        name = node.name if around.kind == "module" else f"{around.name}.{node.name}"
        scope = Scope(node, "class" if kind == "class" else "function", name, around)
        around.inner[node.name] = scope
        self.scopes.append(scope)
        self._note(Binding(node.name, None, "definition", node, self._context, self._order))
        return scope


_STATEMENTS: dict[type[ast.stmt], Callable[[Reader, Any], None]] = {
    ast.Expr: Reader._alone,
    ast.Assign: Reader._assign,
    ast.AugAssign: Reader._augment,
    ast.AnnAssign: Reader._annotated,
    ast.If: Reader._if,
    ast.For: Reader._for,
    ast.AsyncFor: Reader._for,
    ast.While: Reader._loop,
    ast.With: Reader._with,
    ast.AsyncWith: Reader._with,
    ast.Return: Reader._return,
    ast.FunctionDef: Reader._function,
    ast.AsyncFunctionDef: Reader._function,
    ast.ClassDef: Reader._class,
    ast.Import: Reader._import,
    ast.ImportFrom: Reader._import,
    ast.Try: Reader._try,
    ast.TryStar: Reader._try,
    ast.Match: Reader._match,
    ast.Delete: Reader._delete,
    ast.Global: Reader._outer,
    ast.Nonlocal: Reader._outer,
}


def _of_import(node: ast.expr) -> str:
    """Return the qualified name of an attribute of `__import__("module")`; "" for other expressions."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if parts and isinstance(node, ast.Call) and dotted(node.func) == "__import__" and len(node.args) == 1:
        module = node.args[0]
        if isinstance(module, ast.Constant) and isinstance(module.value, str):
            return documented(".".join((module.value, *reversed(parts))))
    return ""
