from __future__ import annotations

from collections.abc import Iterator

from truestep.findings import Confidence, Severity
from truestep.rules._notice import Notice
from truestep.rules._syntax import stored
from truestep.syntax import Program, Suspicion


class WholeModelPickled(Notice):
    """A model itself is saved instead of its weights: the file depends on code that it does not contain.

    What it does
    ------------
    Reports calls of ``torch.save`` with a model, or with a dict that has a model among its values: with medium
    confidence if the file constructs the model, and with low confidence if only its name says so. Not reported:
    buffers in memory, and paths that the same file loads again.

    Why it matters
    --------------
    The file has the name of the class, not its code. If ``forward`` is changed later, the loaded model computes the
    new function with the old weights, without a warning; if the class is moved or renamed, it cannot be loaded.
    ``torch.load`` refuses the file by default, since it can run code. The documentation of torch recommends the
    state dict.

    Example
    -------
    ::

        torch.save(model, "model.pt")

    Fix
    ---
    Save the weights, and load them into a model that the program builds::

        torch.save(model.state_dict(), "model.pt")

        model = Net()
        model.load_state_dict(torch.load("model.pt"))

    Known false alarms
    ------------------
    Models with layers that were changed after the construction, as by pruning, if the code is kept beside the file.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/notes/serialization.html
    """

    id = "whole-model-pickled"
    since = "0.1"
    severity = Severity.WARNING
    account = "state"
    confidence = Confidence.MEDIUM

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return stored.whole_model_pickled(program)
