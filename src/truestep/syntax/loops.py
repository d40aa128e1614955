"""Roles of loops: over batches of a training, over its epochs, over batches of an evaluation."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from truestep.syntax.kinds import Kind
from truestep.syntax.operations import Act, Operation
from truestep.syntax.places import Call, Context, Loop, Scope
from truestep.syntax.training import Step, Training

if TYPE_CHECKING:
    from truestep.syntax.program import Program

_EVALUATES = re.compile(r"(?:^|_)(?:eval\w*|valid\w*|val|test\w*|predict\w*|infer\w*|score)(?:_|$)")
_TRAINS = re.compile(r"(?:^|_)(?:train\w*|fit|optimi[sz]e|update|learn)(?:_|$)")


class Loops:
    """Finds the loops of a file by their role."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._trainings: list[Training] | None = None
        self._functions: list[Training] | None = None

    def trainings(self) -> list[Training]:
        """Return the innermost loops around steps of optimizers, in the function itself or one that it calls."""
        if self._trainings is None:
            self._trainings = []
            if self._steps():
                for loop in self._program.loops:
                    operations = self._program.flow.of_loop(loop) if loop.scope in self.reaching else []
                    if any(one.act is Act.STEP and one.loops[-1] is loop for one in operations):
                        self._trainings.append(Training(self._program, loop.scope, loop, operations))
        return self._trainings

    def _steps(self) -> bool:
        """Return True if anything in the file may be a step of an optimizer."""
        for call in self._program.method("step"):
            guess = self._program.kinds.receiver(call)
            if guess is not None and guess.kind in (Kind.OPTIMIZER, Kind.SCALER):
                return True
        return False

    @functools.cached_property
    def reaching(self) -> set[Scope]:
        """Return the functions that may take a step, themselves or by the names of others that they call."""
        scopes = self._program.scopes
        found = {call.scope for call in self._program.method("step")}
        classes = {scope.name.rpartition(".")[2] for scope in scopes if scope.kind == "class"}
        names: set[str] = set()
        while True:
            now = {scope.name.rpartition(".")[2] for scope in found}
            now |= classes if "__init__" in now else set()
            if now <= names:
                return found
            found |= {call.scope for name in now - names for call in self._program.method(name)}
            names |= now

    def steps(self) -> list[Training]:
        """Return the training loops, and functions with a step outside of loops that this file does not call."""
        if self._functions is None:
            self._functions = []
            for scope in self._program.functions() if self._steps() else ():
                if scope not in self.reaching:
                    continue
                operations = self._program.flow.operations(scope)
                if any(one.act is Act.STEP and not one.loops for one in operations):
                    if not self._program.calls_of(scope):
                        self._functions.append(Training(self._program, scope, None, operations))
        return [*self.trainings(), *self._functions]

    def updates(self, *, in_loops: bool = False) -> Iterator[tuple[Training, Step]]:
        """Yield the steps on gradients, each with its training loop or the function that takes it.

        Args:
            in_loops: whether functions without a loop are left out.
        """
        for training in self.trainings() if in_loops else self.steps():
            for step in training.steps:
                yield training, step

    def direct(self, act: Act) -> Iterator[tuple[Training, Operation]]:
        """Yield the operations of a kind in the passes of each training loop, without those of loops inside it."""
        for training in self.trainings():
            for one in training.direct(act):
                yield training, one

    def evaluations(self) -> Iterator[Loop]:
        """Yield loops that call a model on batches, and have no backward pass and no step."""
        for loop in self._program.loops:
            if isinstance(loop.node, ast.While):
                continue
            operations = self._program.flow.of_loop(loop)
            acts = {one.act for one in operations}
            direct = any(one.act is Act.FORWARD and one.loops[-1] is loop for one in operations)
            if direct and not acts & {Act.BACKWARD, Act.STEP}:
                yield loop

    def over_loader(self, loop: Loop) -> Call | ast.expr | None:
        """Return the loader that a loop reads, also through `enumerate`, `tqdm` and `zip`; None for other loops."""
        if isinstance(loop.node, ast.While):
            return None
        node = loop.node.iter
        for _ in range(4):
            context = Context(loop.scope, loop.parent, loop.guards)
            if self._program.kinds.is_a(node, Kind.LOADER, context, loop.first):
                return node
            call = self._program.call_at.get(node)
            if call is None or not call.node.args:
                return None
            node = call.node.args[0]
        return None

    def over_batches(self, loop: Loop) -> bool:
        """Return True if a loop is over batches: of a loader, of `split` or `chunk`, or a range with a step."""
        if isinstance(loop.node, ast.While):
            return False
        if self.over_loader(loop) is not None:
            return True
        for node in ast.walk(loop.node.iter):
            call = self._program.call_at.get(node)
            if call is not None and (
                call.method in ("split", "chunk") or (call.name == "range" and len(call.node.args) == 3)
            ):
                return True
        return False


def evaluates(name: str) -> bool:
    """Return True if a function has a name of an evaluation, such as "validate"."""
    last = name.rpartition(".")[2]
    return bool(_EVALUATES.search(last)) and not _TRAINS.search(last)
