"""Transforms that are assigned through a part of a split, and so belong to the other parts too, from the syntax."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from truestep import source
from truestep.syntax import Call, Program, Suspicion, dotted

_SWITCH = re.compile(r"transform|augment|^aug$|_aug$|^aug_|^(?:is_)?train(?:ing)?$|jitter")
"""Attributes of a data set that change its samples at random."""
_EVALUATION = re.compile(r"(?:^|[._])(?:val\w*|test\w*|dev|eval\w*|holdout|held_out)(?:$|_)")
_TRAINING = re.compile(r"(?:^|[._])(?:train\w*|fit)(?:$|_)")
_SPLIT = "torch.utils.data.random_split"
_HARMLESS = frozenset({"len", "print", "iter", "type", "id"})


@dataclass(slots=True)
class _Split:
    """Parts of one data set that were made in one block of statements."""

    whole: str
    node: ast.AST
    block: list[ast.stmt]
    call: Call
    parts: list[str] = field(default_factory=list)


def lost_in_training(program: Program) -> Iterator[Suspicion]:
    """Yield transforms that an assignment through the part for the evaluation takes from the training as well."""
    if ".dataset." not in program.text or not ("random_split" in program.text or "Subset" in program.text):
        return
    above = source.parents(program.tree)
    splits = list(_splits(program, above))
    if not splits:
        return
    written = list(_written(program.tree))
    if any(dotted(target).endswith(".dataset") for target, _ in written):
        return  # a part got a separate data set
    for split in splits:
        yield from _of_split(split, written, program, above)


def _splits(program: Program, above: dict[ast.AST, ast.AST]) -> Iterator[_Split]:
    subsets: dict[tuple[int, str], _Split] = {}
    for call in program.named(_SPLIT, "torch.utils.data.Subset"):
        statement, whole = call.statement, call.argument(0, "dataset")
        block = _block(statement, above)
        if not isinstance(statement, ast.Assign) or statement.value is not call.node or block is None:
            continue
        if whole is None or not dotted(whole) or len(statement.targets) != 1:
            continue
        target = statement.targets[0]
        if call.name == _SPLIT and isinstance(target, ast.Tuple):
            parts = [name for one in target.elts if (name := dotted(one)) and name != "_"]
            yield _Split(dotted(whole), call.node, block, call, parts)
        elif call.name != _SPLIT and dotted(target):
            key = id(block), dotted(whole)
            subsets.setdefault(key, _Split(dotted(whole), call.node, block, call)).parts.append(dotted(target))
    yield from (one for one in subsets.values() if len(one.parts) > 1)


def _written(tree: ast.Module) -> Iterator[tuple[ast.Attribute, ast.Assign]]:
    """Yield the assignments to attributes of other objects than `self`, with their statements."""
    for node in source.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Attribute) and dotted(target.value) not in ("self", ""):
                    yield target, node


def _of_split(
    split: _Split, written: list[tuple[ast.Attribute, ast.Assign]], program: Program, above: dict[ast.AST, ast.AST]
) -> Iterator[Suspicion]:
    owners = {f"{part}.dataset": part for part in split.parts} | {split.whole: ""}
    ways = {target.attr for target, _ in written if dotted(target.value) in owners and _SWITCH.search(target.attr)}
    for name in sorted(ways):
        of_name = [(target, node) for target, node in written if target.attr == name]
        if any(dotted(one.value) not in owners or node not in split.block for one, node in of_name):
            continue  # switched back and forth
        if f'"{name}"' in program.text or f"'{name}'" in program.text:
            continue  # by `setattr`, too
        if _is_switched(name, split, program):
            continue
        of_name.sort(key=lambda pair: pair[1].lineno)
        for other in split.parts:
            own = [node.lineno for one, node in of_name if owners[dotted(one.value)] in (other, "")]
            later = [pair for pair in of_name if pair[1].lineno > max(own, default=0)]
            before = next((node.value for _, node in reversed(of_name) if node.lineno in own), None)
            before = _built(split, name, program) if before is None else before
            if not later or before is None or _is_off(before) or _same(before, later[-1][1].value):
                continue
            last, statement = later[0]
            loader = _trained(other, {owners[dotted(one.value)] for one, _ in later}, split, statement, program)
            if loader is not None:
                yield Suspicion(
                    statement,
                    f"`{dotted(last)}` is also that of `{other}`: the training loses `{ast.unparse(before)[:60]}`",
                    "both parts read one data set",
                    f"give `{dotted(last).split('.dataset.')[0]}` a separate data set with the same indices",
                    ((split.node, "the parts"), (loader.node, "the training reads this part")),
                )


def _is_switched(name: str, split: _Split, program: Program) -> bool:
    """Return True if a method may switch an attribute: one of the file that assigns it, or one with such a name."""
    for owner in source.walk(program.tree):
        for method in owner.body if isinstance(owner, ast.ClassDef) else ():
            if isinstance(method, ast.FunctionDef) and method.name != "__init__" and _assigns(method, f"self.{name}"):
                return True
    holders = {split.whole, *(f"{part}.dataset" for part in split.parts)}
    called = (node.func for node in source.walk(program.tree) if isinstance(node, ast.Call))
    methods = (one for one in called if isinstance(one, ast.Attribute) and dotted(one.value) in holders)
    return any(_SWITCH.search(one.attr) or one.attr in ("eval", "test") for one in methods)


def _assigns(function: ast.FunctionDef, name: str) -> bool:
    statements = (one for one in source.walk(function) if isinstance(one, ast.Assign))
    return any(dotted(target) == name for one in statements for target in one.targets)


def _built(split: _Split, name: str, program: Program) -> ast.expr | None:
    """Return the value of an attribute that the data set was built with; None if it is unknown."""
    found = program.values.bindings(split.whole, split.call.scope)
    made = program.call_at.get(found[0].value) if len(found) == 1 and found[0].value is not None else None
    if made is None or made.unpacks:
        return None
    for keyword in made.node.keywords:
        if keyword.arg == name:
            return keyword.value
    found_in = program.resolve(made)
    start = None if found_in is None else found_in.node
    if not isinstance(start, ast.FunctionDef) or start.name != "__init__":
        return None
    names = [one.arg for one in start.args.args][1:]
    if name in names and names.index(name) < len(made.node.args):
        return made.node.args[names.index(name)]
    for inner in source.walk(start):
        if isinstance(inner, ast.Assign) and dotted(inner.targets[0]) == f"self.{name}":
            given = dotted(inner.value)
            if given in names and given != name:
                return made.argument(names.index(given), given)
            return inner.value if isinstance(inner.value, ast.Constant) else None
    return None


def _trained(other: str, parts: set[str], split: _Split, statement: ast.Assign, program: Program) -> Call | None:
    """Return the loader of a part that is trained on after a statement, if other parts are evaluated; else None."""
    loaders: dict[str, list[Call]] = {}
    for call in program.named("torch.utils.data.DataLoader"):
        given = call.argument(0, "dataset")
        if given is not None and dotted(given) in split.parts:
            loaders.setdefault(dotted(given), []).append(call)
    if any(not _EVALUATION.search(part) or any(map(_shuffles, loaders.get(part, []))) for part in parts):
        return None
    built = loaders.get(other, [])
    if len(built) != 1 or _EVALUATION.search(other) or not (_shuffles(built[0]) or _TRAINING.search(other)):
        return None
    if any(len(program.values.bindings(part, split.call.scope)) > 1 for part in (other, *parts)):
        return None
    made = built[0].statement
    names = {other} | ({dotted(made.targets[0])} if isinstance(made, ast.Assign) else set())
    return None if _read_before(names, split, statement) else built[0]


def _shuffles(loader: Call) -> bool:
    shuffled = loader.argument(2, "shuffle")
    given = isinstance(shuffled, ast.Constant) and shuffled.value is False
    return (shuffled is not None and not given) or loader.argument(3, "sampler") is not None


def _read_before(names: set[str], split: _Split, statement: ast.Assign) -> bool:
    """Return True if a part, or its loader, is used before a statement, other than to build the loader."""
    for one in split.block[: split.block.index(statement)]:
        for node in ast.walk(one):
            if isinstance(node, ast.For) and _reads(node.iter, names):
                return True
            if isinstance(node, ast.Call):
                called = dotted(node.func).rpartition(".")[2]
                if called not in _HARMLESS and called not in ("DataLoader", "random_split", "Subset"):
                    if any(_reads(value, names) for value in (*node.args, *(word.value for word in node.keywords))):
                        return True
    return False


def _reads(node: ast.expr, names: set[str]) -> bool:
    return any(dotted(one) in names for one in ast.walk(node) if isinstance(one, ast.Name | ast.Attribute))


def _block(statement: ast.stmt, above: dict[ast.AST, ast.AST]) -> list[ast.stmt] | None:
    """Return the list of statements that holds one."""
    holder = above.get(statement)
    for name in ("body", "orelse", "finalbody"):
        block = getattr(holder, name, None)
        if isinstance(block, list) and statement in block:
            return block
    return None


def _is_off(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and not value.value


def _same(first: ast.expr, second: ast.expr) -> bool:
    return ast.unparse(first) == ast.unparse(second)
