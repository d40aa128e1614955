"""The model of a file of training code, from its syntax alone, for rules that suspect failures.

- `attributes`: attributes with a next value that a local variable gets.
- `choices`: numbers that are chosen by samples of the test.
- `expressions`: the calls, uses of names and assignments in expressions, and results of loss functions.
- `flow`: the order of clearing, backward passes, clips, steps and modes along the paths through loops and functions.
- `kinds`: which names are models, optimizers, schedulers, losses, loaders, scalers and data sets.
- `loops`: which loops are loops over batches, epochs or evaluation batches.
- `models`: the modules that a file defines, their layers and the last operation of their outputs.
- `names`: qualified names of imported functions and classes.
- `operations`: the operations that matter for the order of a training, and the way to each.
- `places`: scopes, loops, calls and bindings.
- `program`: the model, built once per file, with indexes of calls.
- `reader`: the one pass over the tree, by its statements.
- `training`: a training loop, and the gradients of its steps.
- `suspicion`: a failure that a rule suspects.
- `values`: the assignments that reach a use of a name.
- `wrappers`: decorators of the same file, and the functions that they put around others.
"""

from truestep.syntax.choices.numbers import ChosenByTest, chosen_by_test
from truestep.syntax.choices.weights import WeightsByTest, weights_by_test
from truestep.syntax.choices.words import of_part
from truestep.syntax.expressions import counts_samples, is_made_by_losses, is_result_of_loss
from truestep.syntax.kinds import Kind
from truestep.syntax.loops import evaluates
from truestep.syntax.names import dotted
from truestep.syntax.operations import Act, Operation
from truestep.syntax.places import NO_GRAD, Binding, Call, Context, Guard, Loop, Scope
from truestep.syntax.program import Program
from truestep.syntax.suspicion import Suspicion
from truestep.syntax.training import Step, Training
from truestep.syntax.values import argument, names_in, part_of

__all__ = [
    "NO_GRAD",
    "Act",
    "Binding",
    "Call",
    "ChosenByTest",
    "Context",
    "Guard",
    "Kind",
    "Loop",
    "Operation",
    "Program",
    "Scope",
    "Step",
    "Suspicion",
    "Training",
    "WeightsByTest",
    "argument",
    "chosen_by_test",
    "counts_samples",
    "dotted",
    "evaluates",
    "is_made_by_losses",
    "is_result_of_loss",
    "names_in",
    "of_part",
    "part_of",
    "weights_by_test",
]
