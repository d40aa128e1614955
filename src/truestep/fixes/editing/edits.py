"""Changes of expressions and statements of a program, collected and then made in one pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import libcst as cst

from truestep.fixes.editing.program import Program, Statement, Uncertain

Where = Literal["before", "after"]
Line = cst.SimpleStatementLine | cst.BaseCompoundStatement


@dataclass(slots=True)
class _Beside:
    """Statements to insert beside one."""

    before: list[Line] = field(default_factory=list)
    after: list[Line] = field(default_factory=list)


class Edits:
    """Changes of a program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._changes: dict[cst.CSTNode, Callable[[cst.CSTNode], cst.CSTNode]] = {}
        self._beside: dict[cst.CSTNode, _Beside] = {}
        self._removed: set[cst.CSTNode] = set()
        self._above: dict[cst.CSTNode, list[cst.EmptyLine]] = {}
        """New empty lines and comments above lines."""
        self.touched: set[int] = set()
        """Numbers of the lines with changed, moved and removed code; those beside insertions are not among them."""

    def replace(self, node: cst.BaseExpression, new: cst.BaseExpression | str) -> None:
        """Replace an expression by another one; parentheses are added to a text where it needs them."""
        made = self.expression(new, self.program.parent(node)) if isinstance(new, str) else new
        self.change(node, lambda _: made)

    def change(self, node: cst.CSTNode, how: Callable[[cst.CSTNode], cst.CSTNode]) -> None:
        """Change a node by a function of the node with the changes below it."""
        if node in self._changes:
            raise Uncertain
        self._changes[node] = how
        self._touch(node)

    def wrap(self, node: cst.BaseExpression, before: str, after: str = ")") -> None:
        """Write text around an expression, as in a call: ``wrap(node, "list(")``."""
        self.replace(node, self.expression(f"{before}{self.program.code(node)}{after}"))

    def add_argument(self, call: cst.Call, text: str, *, first: bool = False) -> None:
        """Add an argument to a call, the last one by default, in the layout of its arguments."""
        new = cast("cst.Call", self.expression(f"f({text})")).args[0]
        self.change(call, lambda node: _with_argument(cast("cst.Call", node), new, first=first))

    def set_argument(self, call: cst.Call, old: cst.Arg | None, keyword: str, value: str) -> None:
        """Set an argument of a call to a value, or add it with its keyword."""
        if old is None:
            self.add_argument(call, f"{keyword}={value}")
        else:
            self.replace(old.value, value)

    def drop_argument(self, call: cst.Call, old: cst.Arg) -> None:
        """Remove an argument of a call."""
        place = call.args.index(old)
        self.change(call, lambda node: _without_argument(cast("cst.Call", node), place))

    def insert(self, where: Where, statement: Statement, *texts: str) -> None:
        """Insert statements before or after one, on lines as the one has.

        Raises:
            Uncertain: the statement shares its line with others, and a new one cannot.
        """
        for text in texts:
            self.put(where, statement, self._parsed(text))

    def put(self, where: Where, statement: Statement, new: Line) -> None:
        """Insert a line or a compound statement before or after a statement."""
        host = self.host(statement)
        if not isinstance(host, Line) and not _is_simple(new):
            raise Uncertain
        beside = self._beside.setdefault(host, _Beside())
        (beside.before if where == "before" else beside.after).append(new)

    def append(self, body: cst.BaseSuite, text: str) -> None:
        """Insert a statement at the end of a body."""
        self.insert("after", last_of(body), text)

    def prepend(self, body: cst.BaseSuite, text: str) -> None:
        """Insert a statement at the start of a body."""
        self.insert("before", first_of(body), text)

    def remove(self, statement: Statement) -> None:
        """Remove a statement; with its line and the comments above it, if it is alone there."""
        host = self.host(statement)
        owner = self.program.parent(host)
        if not isinstance(owner, cst.IndentedBlock | cst.Module | cst.SimpleStatementLine | cst.SimpleStatementSuite):
            raise Uncertain
        self._removed.add(host)
        self._touch(host)
        place = owner.body.index(host)
        if isinstance(host, Line) and place + 1 < len(owner.body):
            self._space(host, cast("Line", owner.body[place + 1]), first=place == 0)

    def _space(self, gone: Line, following: Line, *, first: bool) -> None:
        """Give the empty lines above a removed line to the next one, except at the start of a block."""
        above, blank = list(following.leading_lines), _blank_lines(following)
        if first:
            self._above[following] = above[blank:]
        elif not blank:
            self._above[following] = [*list(gone.leading_lines)[: _blank_lines(gone)], *above]

    def move(self, statement: Statement, where: Where, target: Statement) -> None:
        """Move a statement with its comments before or after another one."""
        host = self.host(statement)
        if host is self.host(target):
            raise Uncertain
        if isinstance(host, Line):
            comments = [line for line in host.leading_lines if line.comment is not None]
            new = host.deep_clone().with_changes(leading_lines=[line.deep_clone() for line in comments])
        else:
            alone = cast("cst.BaseSmallStatement", host).deep_clone()
            new = cst.SimpleStatementLine([alone.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)])
        if not isinstance(self.host(target), Line) and _has_comments(new):
            raise Uncertain
        self.put(where, target, new)
        self.remove(statement)

    def host(self, statement: Statement) -> cst.CSTNode:
        """Return the line of a statement that is alone on it; else the statement itself."""
        if isinstance(statement, cst.BaseCompoundStatement):
            return statement
        parent = self.program.parent(statement)
        return parent if isinstance(parent, cst.SimpleStatementLine) and len(parent.body) == 1 else statement

    def expression(self, text: str, parent: cst.CSTNode | None = None) -> cst.BaseExpression:
        """Return a text as an expression, in parentheses where it is part of another one and needs them."""
        made = cst.parse_expression(text, self.program.module.config_for_parsing)
        weak = cst.BinaryOperation | cst.UnaryOperation | cst.BooleanOperation | cst.Comparison | cst.IfExp | cst.Lambda
        strong = cst.BinaryOperation | cst.UnaryOperation | cst.Attribute | cst.Subscript | cst.Comparison | cst.Await
        function = isinstance(parent, cst.Call)
        if isinstance(made, weak) and not made.lpar and (isinstance(parent, strong) or function):
            made = made.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        return made

    def _touch(self, node: cst.CSTNode) -> None:
        span = self.program.span(node)
        last = span.start.line if isinstance(node, cst.FunctionDef) else span.end.line  # only its decorators change
        self.touched.update(range(span.start.line, last + 1))

    def _parsed(self, text: str) -> Line:
        return cst.parse_statement(text, self.program.module.config_for_parsing)

    def made(self) -> str:
        """Return the text of the file with all changes."""
        if not (self._changes or self._beside or self._removed):
            raise Uncertain
        module = self.program.module.visit(_Pass(self._changes, self._beside, self._removed, self._above))
        return module.code


def first_of(body: cst.BaseSuite) -> Statement:
    """Return the first statement of a body after its docstring."""
    statements = statements_of(body)
    if len(statements) > 1 and is_text(statements[0]):
        return statements[1]
    return statements[0]


def last_of(body: cst.BaseSuite) -> Statement:
    """Return the last statement of a body.

    Raises:
        Uncertain: the body has none, or ends by leaving the loop or the function.
    """
    last = statements_of(body)[-1]
    if isinstance(last, cst.Return | cst.Raise | cst.Continue | cst.Break):
        raise Uncertain
    return last


def statements_of(body: cst.CSTNode) -> list[Statement]:
    """Return the statements of a block or of the module, in order."""
    found: list[Statement] = []
    for one in cast("Sequence[cst.CSTNode]", getattr(body, "body", ())):
        if isinstance(one, cst.SimpleStatementLine):
            found.extend(one.body)
        else:
            found.append(cast("Statement", one))
    return found


def is_text(statement: Statement) -> bool:
    """Return True for a statement that is only a string, such as a docstring."""
    return isinstance(statement, cst.Expr) and isinstance(statement.value, cst.BaseString)


class _Pass(cst.CSTTransformer):
    """The pass over the tree that makes all changes."""

    def __init__(
        self,
        changes: dict[cst.CSTNode, Callable[[cst.CSTNode], cst.CSTNode]],
        beside: dict[cst.CSTNode, _Beside],
        removed: set[cst.CSTNode],
        above: dict[cst.CSTNode, list[cst.EmptyLine]],
    ) -> None:
        super().__init__()
        self._changes, self._beside, self._removed, self._above = changes, beside, removed, above

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> Any:
        node = cast("cst.CSTNode", super().on_leave(original_node, updated_node))
        if original_node in self._changes:
            node = self._changes[original_node](node)
        if original_node in self._above:
            node = node.with_changes(leading_lines=self._above[original_node])
        if isinstance(original_node, cst.SimpleStatementLine | cst.SimpleStatementSuite):
            node = _with_semicolons(original_node, node)
        beside, gone = self._beside.get(original_node), original_node in self._removed
        if isinstance(original_node, cst.IndentedBlock | cst.Module | cst.SimpleStatementSuite):
            return _never_empty(node)
        if beside is None:
            return cst.RemoveFromParent() if gone else node
        middle = [] if gone else [node]
        if isinstance(original_node, Line):
            before, first = _spaced(beside.before, cast("Line | None", middle[0] if middle else None))
            return cst.FlattenSentinel([*before, *([first] if first is not None else []), *beside.after])
        before_, after_ = (
            [one for line in lines for one in cast("cst.SimpleStatementLine", line).body]
            for lines in (beside.before, beside.after)
        )
        return cst.FlattenSentinel([*before_, *cast("list[cst.BaseSmallStatement]", middle), *after_])


def _spaced(before: list[Line], line: Line | None) -> tuple[list[Line], Line | None]:
    """Give the empty lines above a line to the first one that is inserted before it."""
    if not before or line is None:
        return before, line
    above, blank = list(line.leading_lines), _blank_lines(line)
    first = before[0].with_changes(leading_lines=[*above[:blank], *before[0].leading_lines])
    return [first, *before[1:]], line.with_changes(leading_lines=above[blank:])


def _blank_lines(line: Line) -> int:
    """Return the number of empty lines directly above the first comment of a line, or above the line."""
    above = line.leading_lines
    return next((place for place, one in enumerate(above) if one.comment is not None), len(above))


def _with_semicolons(original: cst.SimpleStatementLine | cst.SimpleStatementSuite, node: cst.CSTNode) -> cst.CSTNode:
    """Keep semicolons between statements, and behind the last one only if there was one."""
    if not isinstance(node, cst.SimpleStatementLine | cst.SimpleStatementSuite) or not node.body:
        return node
    ended = original.body[-1].semicolon
    default = cst.MaybeSentinel.DEFAULT
    between = [one.with_changes(semicolon=default) if one.semicolon is ended else one for one in node.body[:-1]]
    return node.with_changes(body=[*between, node.body[-1].with_changes(semicolon=ended)])


def _never_empty(node: cst.CSTNode) -> cst.CSTNode:
    if isinstance(node, cst.SimpleStatementSuite) and not node.body:
        return node.with_changes(body=[cst.Pass()])
    if isinstance(node, cst.IndentedBlock) and not node.body:
        return node.with_changes(body=[cst.SimpleStatementLine([cst.Pass()])])
    return node


def _is_simple(line: Line) -> bool:
    return isinstance(line, cst.SimpleStatementLine) and not _has_comments(line)


def _has_comments(line: Line) -> bool:
    above = any(one.comment is not None for one in line.leading_lines)
    return above or (isinstance(line, cst.SimpleStatementLine) and line.trailing_whitespace.comment is not None)


def _with_argument(call: cst.Call, new: cst.Arg, *, first: bool) -> cst.Call:
    """Return a call with one argument more, on a line as the others have one."""
    args, before = list(call.args), call.whitespace_before_args
    if not args:
        return call.with_changes(args=[new])
    if first:
        comma = cst.Comma(whitespace_after=before if _is_break(before) else cst.SimpleWhitespace(" "))
        return call.with_changes(args=[new.with_changes(comma=comma), *args])
    last = args[-1]
    ended = isinstance(last.comma, cst.Comma)
    tail = last.comma.whitespace_after if isinstance(last.comma, cst.Comma) else last.whitespace_after_arg
    join: cst.BaseParenthesizableWhitespace = cst.SimpleWhitespace(" ")
    if isinstance(tail, cst.ParenthesizedWhitespace):  # the closing parenthesis begins a line
        commas = [arg.comma.whitespace_after for arg in args[:-1] if isinstance(arg.comma, cst.Comma)]
        breaks = [one for one in (before, *commas) if isinstance(one, cst.ParenthesizedWhitespace)]
        indent = breaks[-1].last_line if breaks else tail.last_line
        join = tail.with_changes(indent=True, last_line=indent)
        plain = tail.first_line.with_changes(whitespace=cst.SimpleWhitespace(""), comment=None)
        tail = tail.with_changes(first_line=plain, empty_lines=[])
    comma = cst.Comma(whitespace_after=join)
    last = last.with_changes(comma=comma, whitespace_after_arg=cst.SimpleWhitespace(""))
    end = {"comma": cst.Comma(whitespace_after=tail)} if ended else {"whitespace_after_arg": tail}
    return call.with_changes(args=[*args[:-1], last, new.with_changes(**end)])


def _is_break(space: cst.BaseParenthesizableWhitespace) -> bool:
    return isinstance(space, cst.ParenthesizedWhitespace) and space.first_line.comment is None


def _without_argument(call: cst.Call, place: int) -> cst.Call:
    args = [arg for number, arg in enumerate(call.args) if number != place]
    if args and place == len(args):  # the last one: its comma and space end the call
        gone = call.args[place]
        args[-1] = args[-1].with_changes(comma=gone.comma, whitespace_after_arg=gone.whitespace_after_arg)
    return call.with_changes(args=args)
