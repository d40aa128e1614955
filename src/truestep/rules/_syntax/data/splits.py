"""Data of the training and of the evaluation, from the syntax."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from truestep.findings import Confidence
from truestep.syntax import Act, Call, Program, Scope, Suspicion, dotted


def train_validation_overlap(program: Program) -> Iterator[Suspicion]:
    """Yield training loaders of a whole data set of which a part is held out for the evaluation."""
    for split in program.named("torch.utils.data.random_split"):
        whole = split.argument(0, "dataset")
        statement = split.statement
        if whole is None or not dotted(whole) or not isinstance(statement, ast.Assign) or split.loop is not None:
            continue
        target = statement.targets[0]
        if not isinstance(target, ast.Tuple) or len(target.elts) != 2 or statement.value is not split.node:
            continue
        train, held = (dotted(one) for one in target.elts)
        read = {
            dotted(value): call for call in _loaders(split.scope, program) if (value := call.argument(0, "dataset"))
        }
        if dotted(whole) not in read or held not in read or train in read or _read_elsewhere(train, split, program):
            continue
        yield Suspicion(
            read[dotted(whole)].node,
            f"the training reads all of `{dotted(whole)}`, and so the samples that are held out",
            f"reads the samples of `{held}` too",
            f"build the loader on `{train}`",
            ((split.node, "the split"),),
        )


def _loaders(scope: Scope, program: Program) -> list[Call]:
    return [call for call in program.named("torch.utils.data.DataLoader") if call.scope is scope]


def _read_elsewhere(name: str, split: Call, program: Program) -> bool:
    return any(key == name or key.startswith(f"{name}.") for scope in program.scopes for key in scope.loads)


def augmentation_in_evaluation(program: Program) -> Iterator[Suspicion]:
    """Yield data sets of an evaluation with a random transform of the training."""
    for call in program.starting("torchvision.datasets."):
        if not re.match(r"^torchvision\.datasets\.(?!ImageFolder|DatasetFolder)\w+$", call.name):
            continue
        train = call.argument(1, "train")
        if not (isinstance(train, ast.Constant) and train.value is False):
            continue
        value = call.argument(2, "transform")
        if value is None:
            continue
        found = program.values.origin(value, call.context, call.order)[0]
        random = next(
            (
                inner
                for node in ast.walk(found)
                if (inner := program.call_at.get(node)) is not None
                and re.match(
                    r"^torchvision\.transforms\.(?:v2\.)?(?:Random\w+|AutoAugment|TrivialAugmentWide|ColorJitter)$",
                    inner.name,
                )
            ),
            None,
        )
        if random is not None:
            yield Suspicion(
                call.node,
                f"the evaluation reads its samples through the random transform `{random.method}`",
                "is the test set",
                "pass a transform without random parts",
                ((random.node, "changes its results from read to read"),),
                Confidence.MEDIUM if "tta" in program.text.lower() else Confidence.HIGH,
            )


def training_on_evaluation_data(program: Program) -> Iterator[Suspicion]:
    """Yield training loops over a loader for the evaluation, in files with a training loader that is never read."""
    built: dict[str, Call] = {}
    for call in program.named("torch.utils.data.DataLoader"):
        statement = call.statement
        if isinstance(statement, ast.Assign) and statement.value is call.node and (key := dotted(statement.targets[0])):
            built[key] = call
    train = [key for key in built if "train" in key and not any(key in scope.loads for scope in program.scopes)]
    if len(train) != 1:
        return
    for training in program.roles.trainings():
        loop = training.loop
        node = None if loop is None else program.roles.over_loader(loop)
        if not isinstance(node, ast.expr) or not training.of(Act.BACKWARD):
            continue
        key = dotted(node)
        if key in built and re.search(r"(?:^|_)(?:val|valid|validation|test|eval)(?:_|$)", key):
            yield Suspicion(
                node,
                f"the training reads `{key}`, and `{train[0]}` is never read",
                "the data of the evaluation",
                f"train on `{train[0]}`",
                ((built[train[0]].node, "is never read"),),
            )
