"""Kinds of objects: which names are models, optimizers, schedulers, losses, loaders, scalers and data sets."""

from __future__ import annotations

import ast
import enum
import re
from typing import TYPE_CHECKING, NamedTuple

from truestep.syntax.names import dotted
from truestep.syntax.places import Binding, Call, Context, Scope
from truestep.syntax.values import MOST

if TYPE_CHECKING:
    from truestep.syntax.program import Program


class Kind(enum.Enum):
    """Kind of an object of a training."""

    MODEL = "model"
    OPTIMIZER = "optimizer"
    SCHEDULER = "scheduler"
    LOSS = "loss function"
    LOADER = "loader"
    SCALER = "scaler"
    DATASET = "data set"
    ENGINE = "engine"
    """An object of a framework that runs parts of the loop: an Accelerator, a Fabric, an engine of DeepSpeed."""
    OTHER = "other"


class Guess(NamedTuple):
    """Kind of an object, and how it is known."""

    kind: Kind
    sure: bool
    """True from a construction or an annotation, False from its name."""


_NAMES = (
    (Kind.SCHEDULER, re.compile(r"sched|warmup$")),
    (
        Kind.OPTIMIZER,
        re.compile(r"(?:^|_)(?:optimi[sz]ers?|optims?|opts?)(?:$|_|\d)|^optimi[sz]er|^optim?_?[A-Z]$|_optim"),
    ),
    (Kind.LOADER, re.compile(r"loader|(?:^|_)dl$|^(?:train|val|valid|test)_?(?:iter|dl)$")),
    (
        Kind.LOSS,
        re.compile(r"^(?:criterion|criterions|loss_?fn|loss_?func(?:tion)?|crit|objective)|_(?:criterion|loss_fn)$"),
    ),
    (Kind.SCALER, re.compile(r"^(?:grad_?|amp_?|loss_?)?scaler$")),
    (
        Kind.MODEL,
        re.compile(
            r"(?:^|_)(?:model|net|network|encoder|decoder|generator|discriminator|backbone|classifier|critic|actor|"
            r"student|teacher|resnet|unet|gan|vae|bert|gpt|transformer|module)(?:$|_?[A-Z\d])|^net[A-Z]$|^model"
        ),
    ),
    (Kind.DATASET, re.compile(r"(?:^|_)(?:dataset|data_set|trainset|testset|valset|train_set|val_set|test_set|ds)$")),
    (Kind.ENGINE, re.compile(r"^(?:accelerator|fabric|model_engine|engine)$")),
)
_KEEPERS = {
    "to", "cuda", "cpu", "half", "float", "double", "bfloat16", "train", "eval", "requires_grad_", "apply", "compile",
    "deepcopy", "copy", "type", "share_memory", "to_empty",
}  # fmt: skip
"""Methods and functions that return the object itself or a copy."""
_WRAPPERS = {
    "torch.compile", "torch.nn.DataParallel", "torch.nn.parallel.DistributedDataParallel", "torch.jit.script",
    "torch.nn.parallel.DataParallel", "copy.deepcopy", "copy.copy", "torch.distributed.fsdp.FullyShardedDataParallel",
    "torch.optim.swa_utils.AveragedModel",
}  # fmt: skip
_DATASETS = re.compile(
    r"^torch\.utils\.data\.(?:\w*Dataset|Subset)$|^torchvision\.datasets\.\w+$|^datasets\.load_dataset$"
)
_FACTORIES = re.compile(
    r"^(?:torchvision\.models\.[\w.]+|timm\.create_model|.*\.from_pretrained|segmentation_models_pytorch\.\w+)$"
)
_ENGINES = re.compile(r"^(?:accelerate\.Accelerator|lightning\.(?:fabric\.)?Fabric|lightning_fabric\.Fabric)$")
_FUNCTIONAL = ("torch.nn.functional.", "torch.nn.init.", "torch.nn.utils.", "torch.nn.parallel.")


def of_name(name: str) -> Kind | None:
    """Return the kind of object that usually has a name; None for other names.

    >>> of_name("optimizer_D"), of_name("self.val_loader"), of_name("x")
    (<Kind.OPTIMIZER: 'optimizer'>, <Kind.LOADER: 'loader'>, None)
    """
    last = name.rpartition(".")[2].lstrip("_")
    return next((kind for kind, pattern in _NAMES if pattern.search(last)), None)


def of_construction(name: str) -> Kind | None:
    """Return the kind of object that a class or function of torch makes, by its qualified name."""
    if name.startswith("torch.optim."):
        rest = name.removeprefix("torch.optim.")
        if rest.startswith("lr_scheduler."):
            return Kind.SCHEDULER
        if rest.startswith("swa_utils."):
            return {"SWALR": Kind.SCHEDULER, "AveragedModel": Kind.MODEL}.get(rest.removeprefix("swa_utils."))
        return Kind.OPTIMIZER if rest[:1].isupper() else None
    if name.startswith("torch.nn."):
        rest = name.removeprefix("torch.nn.")
        if name.startswith(_FUNCTIONAL) or not rest[:1].isupper():
            return Kind.MODEL if name == "torch.nn.parallel.DistributedDataParallel" else None
        if rest in ("Parameter", "Buffer", "UninitializedParameter"):
            return Kind.OTHER
        return Kind.LOSS if rest.endswith("Loss") else Kind.MODEL
    if name in ("torch.utils.data.DataLoader", "torch_geometric.loader.DataLoader"):
        return Kind.LOADER
    if name in ("torch.amp.GradScaler", "torch.cuda.amp.GradScaler"):
        return Kind.SCALER
    if name.startswith("transformers.get_") and "schedule" in name:
        return Kind.SCHEDULER
    if _DATASETS.match(name):
        return Kind.DATASET
    if _ENGINES.match(name):
        return Kind.ENGINE
    return Kind.MODEL if _FACTORIES.match(name) else None


class Kinds:
    """Guesses the kinds of the objects of one file."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._known: dict[tuple[ast.AST, int], Guess | None] = {}

    def of(self, node: ast.expr, context: Context, order: int) -> Guess | None:
        """Return the kind of an expression; None if it is unknown."""
        place = (node, id(context.scope))
        if place in self._known:
            return self._known[place]
        self._known[place] = None  # a name that is assigned from itself
        found = self._of(node, context, order)
        self._known[place] = found
        return found

    def is_a(self, node: ast.expr | None, kind: Kind, context: Context, order: int, *, sure: bool = False) -> bool:
        """Return True if an expression has this kind; with `sure`, not only by its name."""
        found = None if node is None else self.of(node, context, order)
        return found is not None and found.kind is kind and (found.sure or not sure)

    def receiver(self, call: Call) -> Guess | None:
        """Return the kind of the object that a method belongs to."""
        node = call.receiver
        return None if node is None else self.of(node, call.context, call.order)

    def _of(self, node: ast.expr, context: Context, order: int) -> Guess | None:
        if isinstance(node, ast.Call):
            return self._of_call(node, context, order)
        if isinstance(node, ast.IfExp):
            one, other = (self.of(part, context, order) for part in (node.body, node.orelse))
            return one if one is not None and other is not None and one.kind is other.kind else None
        if isinstance(node, ast.Subscript):
            return self._of_element(node, context, order)
        if isinstance(node, ast.Attribute) and node.attr == "module":
            return self.of(node.value, context, order)
        key = dotted(node)
        if not key:
            return None
        if key == "self":
            owner = context.scope.owner
            return Guess(Kind.MODEL, True) if owner is not None and self._program.models.is_model(owner) else None
        found = self._of_bindings(key, context, order)
        if found is not None:
            return found
        kind = of_name(key)
        return None if kind is None else Guess(kind, False)

    def _of_bindings(self, key: str, context: Context, order: int) -> Guess | None:
        bindings = self._program.values.reaching(key, context, order)
        if bindings is None:
            bindings = self._program.values.bindings(key, context.scope)
        if len(bindings) > MOST:
            return None
        guesses = [self._of_binding(one, key) for one in bindings]
        known = [one for one in guesses if one is not None]
        kinds = {one.kind for one in known}
        if len(kinds) != 1:
            return None
        return Guess(kinds.pop(), all(one is not None and one.sure for one in guesses))

    def _of_binding(self, binding: Binding, key: str) -> Guess | None:
        if binding.how == "parameter":
            return self._of_parameter(binding)
        value = binding.value
        if value is None or binding.how == "augmented":
            return None
        if binding.how == "for":
            return self._elements(value, binding)
        if isinstance(value, ast.Constant):
            return None
        if not binding.index:
            return self.of(value, binding.context, binding.order)
        return self._of_part(value, binding, key)

    def _of_part(self, value: ast.expr, binding: Binding, key: str) -> Guess | None:
        """Return the kind of one part of a tuple: written out, prepared, split, or returned by a function."""
        position = binding.index[0]
        if isinstance(value, ast.Tuple | ast.List):
            if len(binding.index) == 1 and 0 <= position < len(value.elts):
                return self.of(value.elts[position], binding.context, binding.order)
            return None
        call = self._program.call_at.get(value)
        if call is None:
            return None
        if call.method in ("prepare", "setup") and 0 <= position < len(call.node.args):
            return self.of(call.node.args[position], call.context, call.order)
        if call.name == "torch.utils.data.random_split":
            return Guess(Kind.DATASET, True)
        function = self._program.resolve(call)
        if function is None:
            return None
        guesses = [
            self.of(one.elts[position], where, order)
            for one, where, order in function.returns
            if isinstance(one, ast.Tuple) and 0 <= position < len(one.elts)
        ]
        return guesses[0] if guesses and len(set(guesses)) == 1 else None

    def _of_element(self, node: ast.Subscript, context: Context, order: int) -> Guess | None:
        """Return the kind of an element: of the one that is written out, else that of all others, else by a name."""
        found, where, at = self._program.values.origin(node, context, order)
        if found is not node:
            return self.of(found, where, at)
        inside = self._of_elements(node.value, context, order)
        if inside is not None:
            return inside
        around = self.of(node.value, context, order)
        return None if around is None else Guess(around.kind, False)

    def _of_elements(self, node: ast.expr, context: Context, order: int) -> Guess | None:
        """Return the common kind of the elements of a list, a tuple or a dict that is written out."""
        found, where, at = self._program.values.origin(node, context, order)
        if isinstance(found, ast.Tuple | ast.List):
            parts = found.elts
        elif isinstance(found, ast.Dict):
            parts = found.values
        elif isinstance(found, ast.ListComp | ast.DictComp):
            parts = [found.elt if isinstance(found, ast.ListComp) else found.value]
        else:
            return None
        guesses = {self.of(one, where, at) for one in parts}
        return guesses.pop() if len(guesses) == 1 else None

    def _elements(self, value: ast.expr, binding: Binding) -> Guess | None:
        """Return the kind of the variable of a loop over the elements of a list or a dict."""
        call = self._program.call_at.get(value)
        if call is not None and call.receiver is not None and not call.node.args:
            if (call.method, binding.index) in (("values", ()), ("items", (1,))):
                return self._of_elements(call.receiver, binding.context, binding.order)
            return None
        return None if binding.index else self._of_elements(value, binding.context, binding.order)

    def _of_parameter(self, binding: Binding) -> Guess | None:
        annotation = getattr(binding.node, "annotation", None)
        if annotation is not None and (found := self._of_annotation(annotation, binding.context.scope)):
            return Guess(found, True)
        passed = self._program.values.passed(binding, binding.context.scope)
        if passed is not None:
            value, call = passed
            found_there = self.of(value, call.context, call.order)
            if found_there is not None:
                return found_there
        return None

    def _of_annotation(self, node: ast.expr, scope: Scope) -> Kind | None:
        if isinstance(node, ast.BinOp):
            return self._of_annotation(node.left, scope) or self._of_annotation(node.right, scope)
        if isinstance(node, ast.Subscript):
            head = dotted(node.value).rpartition(".")[2]
            if head == "Optional":
                return self._of_annotation(node.slice, scope)
            node = node.value
        name = self._program.reader.qualified(node, scope)
        if name in ("torch.nn.Module",):
            return Kind.MODEL
        if name == "torch.optim.Optimizer":
            return Kind.OPTIMIZER
        if name.startswith("torch.optim.lr_scheduler."):
            return Kind.SCHEDULER
        if name in ("torch.Tensor",):
            return Kind.OTHER
        return of_construction(name) if name else self._of_class(dotted(node), scope)

    def _of_class(self, name: str, scope: Scope) -> Kind | None:
        made = self._program.definition(name, scope)
        if made is None or made.kind != "class":
            return None
        if self._program.models.is_model(made):
            return Kind.LOSS if re.search(r"Loss$|Criterion$", made.name) else Kind.MODEL
        for base in self._program.bases(made):
            found = of_construction(base)
            if found is not None:
                return found
            if base == "torch.optim.Optimizer":
                return Kind.OPTIMIZER
            if base in ("torch.utils.data.Dataset", "torch.utils.data.IterableDataset"):
                return Kind.DATASET
            if base.endswith(("LRScheduler", "_LRScheduler")):
                return Kind.SCHEDULER
        return Kind.OTHER

    def _of_call(self, node: ast.Call, context: Context, order: int) -> Guess | None:
        call = self._program.call_at.get(node)
        if call is None:
            return None
        if call.name:
            if call.name in _WRAPPERS and node.args:
                return self.of(node.args[0], call.context, call.order)
            found = of_construction(call.name)
            if found is not None:
                return Guess(found, True)
        if isinstance(node.func, ast.Name):
            made = self._of_class(node.func.id, call.scope)
            if made is not None:
                return Guess(made, True)
        elif isinstance(node.func, ast.Attribute):
            if node.func.attr in _KEEPERS:
                return self.of(node.func.value, call.context, call.order)
            if node.func.attr in ("prepare", "setup") and len(node.args) == 1:
                return self.of(node.args[0], call.context, call.order)
        function = self._program.resolve(call)
        if function is not None and function.returns:
            guesses = {self.of(one, where, at) for one, where, at in function.returns}
            if len(guesses) == 1:
                return guesses.pop()
        return None
