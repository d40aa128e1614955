from __future__ import annotations

from collections.abc import Iterator

from truestep.findings import Confidence, Severity
from truestep.rules._notice import Notice
from truestep.rules._syntax import advice
from truestep.syntax import Program, Suspicion


class TimingWithoutSynchronise(Notice):
    """The time of a model on an accelerator is read before its work is done.

    What it does
    ------------
    Reports differences of two times with the call of a model between them, in files that move a model to a CUDA
    device by name, if nothing between the two waits for the device: no ``synchronize``, and no value that is read.

    Why it matters
    --------------
    Operations on an accelerator are only queued when a call returns. The difference is the time for queuing them,
    often a small part of the time that they take.

    Example
    -------
    ::

        start = time.perf_counter()
        output = model(x)
        elapsed = time.perf_counter() - start

    Fix
    ---
    Wait for the device before each time::

        torch.cuda.synchronize()
        start = time.perf_counter()
        output = model(x)
        torch.cuda.synchronize()
        elapsed = time.perf_counter() - start

    Known false alarms
    ------------------
    The time for queuing is meant; or the model reads a value inside, and waits for it.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution
    """

    id = "timing-without-synchronise"
    since = "0.1"
    severity = Severity.WARNING
    account = "time"
    confidence = Confidence.MEDIUM

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return advice.timing_without_synchronise(program)
