"""Loaders without an order, a sampler or workers that the training needs."""

from __future__ import annotations

import re

import libcst as cst

from truestep.fixes.editing.edits import first_of
from truestep.fixes.editing.loops import loop_of, loops_of
from truestep.fixes.editing.program import Uncertain, argument, dotted, method, only
from truestep.fixes.fix import Fix


class _Loader(Fix):
    """Shared parts: the call that makes the loader."""

    def loader(self) -> cst.Call:
        """Return the call that makes the loader.

        Raises:
            Uncertain: it does not call torch's `DataLoader`.
        """
        call = self.call()
        if self.names.full(call.func).rpartition(".")[2] != "DataLoader":
            raise Uncertain
        return call


class Shuffle(_Loader):
    """Shuffle the training data."""

    rules = ("training-data-not-shuffled",)
    does = "passes `shuffle=True` to the loader"
    unsafe_if = "always"

    def edit(self) -> None:
        call = self.loader()
        shuffled = argument(call, 2, "shuffle")
        if any(argument(call, place, name) is not None for place, name in ((3, "sampler"), (4, "batch_sampler"))):
            raise Uncertain
        if shuffled is not None and dotted(shuffled.value) != "False":
            raise Uncertain
        self.edits.set_argument(call, shuffled, "shuffle", "True")
        self.title = "Pass `shuffle=True` to the loader"


class KeepWorkers(_Loader):
    """Keep the workers from one pass to the next."""

    rules = ("workers-respawned",)
    does = "passes `persistent_workers=True` to the loader"
    unsafe_if = "always"

    def edit(self) -> None:
        call = self.loader()
        kept = argument(call, -1, "persistent_workers")
        if kept is not None and dotted(kept.value) != "False":
            raise Uncertain
        self.edits.set_argument(call, kept, "persistent_workers", "True")
        self.title = "Pass `persistent_workers=True` to the loader"


class SetEpoch(_Loader):
    """Set the epoch of the sampler before each pass."""

    rules = ("sampler-epoch-not-set",)
    does = "calls `set_epoch` of the sampler at the start of each epoch"

    def edit(self) -> None:
        call = self.loader()
        statement = self.program.statement(call)
        if not isinstance(statement, cst.Assign) or len(statement.targets) != 1 or statement.value is not call:
            raise Uncertain
        loader, sampler = dotted(statement.targets[0].target), argument(call, 3, "sampler")
        scope = self.program.scope(call)
        if not loader or sampler is None or loop_of(self.program, statement) is not None:
            raise Uncertain
        passes = [node for node in self.program.walk(self.program.module, cst.For) if loader in self._iterated(node)]
        loop = only(one for one in passes if self.program.scope(one) is scope or loader.startswith("self."))
        outer = loops_of(self.program, loop)
        if not outer or not isinstance(outer[0], cst.For) or not isinstance(outer[0].target, cst.Name):
            raise Uncertain
        epochs = outer[0]
        assert isinstance(epochs.target, cst.Name)
        counted = isinstance(epochs.iter, cst.Call) and dotted(epochs.iter.func).rpartition(".")[2] in (
            "range",
            "trange",
        )
        if not counted:
            raise Uncertain
        name = epochs.target.value
        if re.fullmatch(r"_(epoch)?", name):  # a name for unread values
            if not self.names.is_free("epoch"):
                raise Uncertain
            self.edits.replace(epochs.target, "epoch")
            name = "epoch"
        owner = self.program.code(sampler.value) if dotted(sampler.value) else f"{loader}.sampler"
        if re.search(rf"{re.escape(owner)}\.set_epoch|sampler\.set_epoch", self.program.text):
            raise Uncertain
        self.edits.insert("before", first_of(epochs.body), f"{owner}.set_epoch({name})")
        self.title = f"Call `{owner}.set_epoch({name})` in each epoch"

    def _iterated(self, loop: cst.For) -> set[str]:
        node = loop.iter
        names = {dotted(node)}
        if isinstance(node, cst.Call):
            names |= {dotted(arg.value) for arg in node.args}
        return names


class TrainOnTrainingData(Fix):
    """Train on the loader that is never read."""

    rules = ("training-on-evaluation-data",)
    does = "trains on the batches of the loader that was made for it and is never read"
    unsafe_if = "always"
    needs_finding = True

    def edit(self) -> None:
        statement = self.statement()
        named = re.search(r"train on the batches of `([A-Za-z_]\w*)`", self.wanted.help)
        if not isinstance(statement, cst.For) or named is None:
            raise Uncertain
        node = statement.iter
        if isinstance(node, cst.Call) and dotted(node.func) in ("enumerate", "tqdm", "zip") and node.args:
            node = node.args[0].value
        if not isinstance(node, cst.Name) or not self.names.assignments(named[1], statement) or node.value == named[1]:
            raise Uncertain
        self.edits.replace(node, named[1])
        self.title = f"Train on `{named[1]}`"


class MoveOutOfPlace(Fix):
    """Make a new tensor of the sample."""

    rules = ("samples-change-between-passes",)
    does = "makes a new tensor of a sample, in place of an operation in place"

    def edit(self) -> None:
        statement = self.statement()
        code = self.program.code
        if isinstance(statement, cst.AugAssign) and isinstance(statement.target, cst.Name):
            operator = code(statement.operator).strip().removesuffix("=")
            value = self.edits.expression(
                code(statement.value), cst.BinaryOperation(cst.Name("a"), cst.Add(), cst.Name("b"))
            )
            made = f"{statement.target.value} = {statement.target.value} {operator} {code(value)}"
        elif isinstance(statement, cst.Expr) and isinstance(statement.value, cst.Call):
            call = statement.value
            name = method(call)
            target = call.func.value if isinstance(call.func, cst.Attribute) else None
            if not isinstance(target, cst.Name) or not name.endswith("_") or name.startswith("_"):
                raise Uncertain
            made = f"{target.value} = {code(call).replace(f'.{name}(', f'.{name[:-1]}(', 1)}"
        else:
            raise Uncertain
        new = cst.parse_statement(made)
        assert isinstance(new, cst.SimpleStatementLine)
        self.edits.change(
            statement,
            lambda node: new.body[0].with_changes(semicolon=getattr(node, "semicolon", cst.MaybeSentinel.DEFAULT)),
        )
        self.title = f"Write `{made}`"
