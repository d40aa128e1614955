from __future__ import annotations

from collections.abc import Iterator

from truestep.findings import Confidence, Severity
from truestep.rules._notice import Notice
from truestep.rules._syntax import advice
from truestep.syntax import Program, Suspicion


class DeprecatedTorchscript(Notice):
    """A model is compiled by TorchScript, which torch has deprecated.

    What it does
    ------------
    Reports calls of ``torch.jit.trace`` and ``torch.jit.script``, and functions that are decorated with the latter, but
    not in functions that are tests: these check that a model can be compiled.

    Why it matters
    --------------
    Torch 2.13 warns of both with a ``DeprecationWarning``, which Python hides outside of the main script. A trace keeps
    one branch of each condition and the numbers that the code computed from shapes, without an error: it is wrong for
    other inputs. ``torch.export`` refuses such code, or keeps the shape free.

    Example
    -------
    ::

        traced = torch.jit.trace(model.eval(), x)
        traced.save("model.pt")

    Fix
    ---
    Export the program, or compile the model where only speed is needed::

        program = torch.export.export(model.eval(), (x,), dynamic_shapes={"x": {0: torch.export.Dim.AUTO}})
        torch.export.save(program, "model.pt2")

    Known false alarms
    ------------------
    A program for a runtime that reads only TorchScript, such as an app with an old version of libtorch.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/jit.html
    - https://docs.pytorch.org/docs/stable/export.html
    """

    id = "deprecated-torchscript"
    since = "0.1"
    severity = Severity.WARNING
    account = "state"
    confidence = Confidence.LOW

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return advice.deprecated_torchscript(program)
