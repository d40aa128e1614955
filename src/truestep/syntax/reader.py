"""The one pass over the tree of a file that finds its scopes, loops, calls, bindings and imports."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from truestep.syntax.names import documented, dotted, imported
from truestep.syntax.places import Binding, Call, Context, Guard, Loop, Scope

_LEAVES = (ast.Continue, ast.Break, ast.Return, ast.Raise)
_PLAIN = (ast.Constant, ast.Pass, ast.Break, ast.Continue)
_DEFINED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Reader:
    """Reads a tree; afterwards the attributes hold all that was found.

    Raises:
        RecursionError: the tree is nested too deeply.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.module = Scope(tree, "module", "<module>", None)
        self.scopes = [self.module]
        self.calls: list[Call] = []
        self.imports: dict[str, str] = {}
        self.bare: list[tuple[ast.Attribute, Context, int]] = []
        self._heads: dict[tuple[Scope, str], str | None] = {}
        self._order = 0
        self._context = Context(self.module)
        self._statement: ast.stmt = ast.Pass()
        self._later: list[Scope] = []
        self._block(tree.body)
        while self._later:  # bodies of functions run after the module around them
            scope = self._later.pop(0)
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
        if place not in self._heads:
            self._heads[place] = self._head(head, scope)
        full = self._heads[place]
        if full is None:
            return "" if dot or rest else head
        return documented(f"{full}{dot}{inner}{rest}") if full else ""

    def _head(self, head: str, scope: Scope) -> str | None:
        """Return the module or object that an imported name means; "" for other names of the file, None if unbound."""
        place: Scope | None = scope
        while place is not None:
            known = place.bindings.get(head)
            if known is not None and (place.kind != "class" or place is scope):
                return self.imports[head] if all(one.how == "import" for one in known) else ""
            place = place.parent
        return self.imports.get(head)

    # Statements

    def _block(self, body: Sequence[ast.stmt]) -> None:
        """Read statements; those behind an `if` that leaves the block run only in its other branch."""
        before = self._context
        for statement in body:
            self._read(statement)
            if type(statement) is ast.If:
                left = [
                    bool(branch) and isinstance(branch[-1], _LEAVES) for branch in (statement.body, statement.orelse)
                ]
                if left[0] != left[1]:
                    self._context = self._guarded(Guard(statement, 1 if left[0] else 0))
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

    def _guarded(self, guard: Guard) -> Context:
        now = self._context
        return Context(now.scope, now.loop, (*now.guards, guard), now.withs, now.deferred)

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

    def _parameters(self, scope: Scope, given: ast.arguments) -> None:
        inside = Context(scope)
        others = [one for one in (given.vararg, given.kwarg) if one is not None]
        for one in (*given.posonlyargs, *given.args, *given.kwonlyargs, *others):
            binding = Binding(one.arg, None, "parameter", one, inside, self._order)
            scope.bindings.setdefault(one.arg, []).append(binding)

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

    # Bindings

    def _note(self, binding: Binding) -> None:
        bindings = binding.context.scope.bindings
        known = bindings.get(binding.key)
        if known is None:
            bindings[binding.key] = [binding]
        else:
            known.append(binding)

    def _bind(
        self,
        target: ast.expr,
        value: ast.expr,
        node: ast.AST,
        how: str = "=",
        index: tuple[int, ...] = (),
        operator: str = "",
    ) -> None:
        kind = type(target)
        if kind is ast.Tuple or kind is ast.List:
            for number, inner in enumerate(target.elts):  # type: ignore[attr-defined]
                self._bind(inner, value, node, how, (*index, number), operator)
            return
        self._order += 1
        if kind is ast.Subscript:
            self._expression(target.value)  # type: ignore[attr-defined]
            self._expression(target.slice)  # type: ignore[attr-defined]
            key = dotted(target.value) + "[]"  # type: ignore[attr-defined]
        elif kind is ast.Starred:
            key = dotted(target.value)  # type: ignore[attr-defined]
            index = (*index, -1)
        else:
            key = dotted(target)
            if kind is ast.Attribute and not key:
                self._expression(target.value)  # type: ignore[attr-defined]
                key = f"?.{target.attr}"  # type: ignore[attr-defined]
        if key:
            self._note(Binding(key, value, how, node, self._context, self._order, index, operator))  # type: ignore[arg-type]

    # Expressions

    def _expression(self, node: ast.AST) -> None:
        kind = type(node)
        if kind in _PLAIN:
            return
        if kind is ast.Name:
            self._load(node.id, node)  # type: ignore[attr-defined]
        elif kind is ast.Attribute:
            if key := dotted(node):
                self._load(key, node)
            else:
                self._expression(node.value)  # type: ignore[attr-defined]
        elif kind is ast.Call:
            self._call(node)  # type: ignore[arg-type]
        elif kind is ast.Lambda:
            self._lambda(node)  # type: ignore[arg-type]
        elif kind is ast.NamedExpr:
            self._expression(node.value)  # type: ignore[attr-defined]
            self._bind(node.target, node.value, node)  # type: ignore[attr-defined]
        elif kind is ast.IfExp:
            self._conditional(node)  # type: ignore[arg-type]
        elif kind in (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp):
            self._comprehension(node)  # type: ignore[arg-type]
        else:
            if kind is ast.Yield and node.value is not None:  # type: ignore[attr-defined]
                self._context.scope.returns.append((node.value, self._context, self._order))  # type: ignore[attr-defined]
            for name in node._fields:
                value = getattr(node, name, None)
                if type(value) is list:
                    for one in value:
                        if isinstance(one, ast.AST):
                            self._expression(one)
                elif isinstance(value, ast.AST):
                    self._expression(value)

    def _load(self, key: str, node: ast.AST) -> None:
        loads = self._context.scope.loads
        known = loads.get(key)
        entry = (self._order, node)
        if known is None:
            loads[key] = [entry]  # type: ignore[list-item]
        else:
            known.append(entry)  # type: ignore[arg-type]

    def _call(self, node: ast.Call) -> None:
        function = node.func
        key, method = "", ""
        if type(function) is ast.Attribute:
            method = function.attr
            key = dotted(function.value)
            if key:
                self._load(key, function.value)
            else:
                self._expression(function.value)
        elif type(function) is ast.Name:
            method = function.id
            self._load(method, function)
        else:
            self._expression(function)
        for argument in node.args:
            self._expression(argument)
        for keyword in node.keywords:
            self._expression(keyword.value)
        self._order += 1
        call = Call(node, "", method, key, self._context, self._statement, self._order)
        self._context.scope.calls.append(call)
        self.calls.append(call)

    def _lambda(self, node: ast.Lambda) -> None:
        around = self._context.scope
        scope = Scope(node, "lambda", f"{around.name}.<lambda>", around)
        self.scopes.append(scope)
        self._parameters(scope, node.args)
        before, self._context = self._context, Context(scope)
        self._expression(node.body)
        scope.returns.append((node.body, self._context, self._order))
        self._context = before

    def _conditional(self, node: ast.IfExp) -> None:
        self._expression(node.test)
        before = self._context
        for branch, part in enumerate((node.body, node.orelse)):
            self._context = self._guarded(Guard(node, branch))
            self._expression(part)
            self._context = before

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        before = self._context
        self._context = Context(before.scope, before.loop, before.guards, before.withs, True)
        for part in node.generators:
            self._expression(part.iter)
            self._bind(part.target, part.iter, part, "for")
            for test in part.ifs:
                self._expression(test)
        if isinstance(node, ast.DictComp):
            self._expression(node.key)
            self._expression(node.value)
        else:
            self._expression(node.elt)
        self._context = before


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
