from __future__ import annotations

from collections.abc import Iterator

from truestep.findings import Confidence, Severity
from truestep.rules._notice import Notice
from truestep.rules._syntax import advice
from truestep.syntax import Program, Suspicion


class DeprecatedBackwardHook(Notice):
    """A module has a backward hook of the deprecated kind, with the gradients of its last operation only.

    What it does
    ------------
    Reports calls of ``register_backward_hook``: with high confidence for a module of a class in the same file, and with
    low confidence for others, which may have a single operation.

    Why it matters
    --------------
    The hook hangs on the last operation of the forward pass, not on the module. For a module with several
    operations, its ``grad_input`` holds the gradients of the inputs of this operation, and not those of the module.
    A hook that changes them changes others than it was written for. Torch has deprecated the method.

    Example
    -------
    ::

        block.register_backward_hook(lambda module, grad_input, grad_output: norms.append(grad_input[0].norm()))

    Fix
    ---
    Use the hook of the whole module::

        block.register_full_backward_hook(lambda module, grad_input, grad_output: norms.append(grad_input[0].norm()))

    Known false alarms
    ------------------
    A module with one operation, for which both hooks get the same gradients.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_backward_hook
    """

    id = "deprecated-backward-hook"
    since = "0.1"
    severity = Severity.WARNING
    account = "gradients"
    confidence = Confidence.MEDIUM

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return advice.deprecated_backward_hook(program)
