from __future__ import annotations

from collections.abc import Iterator

from truestep.findings import Confidence, Severity
from truestep.rules._notice import Notice
from truestep.rules._syntax import advice
from truestep.syntax import Program, Suspicion


class DataParallelModule(Notice):
    """A model is divided over devices by ``DataParallel``, which copies it in every forward pass.

    What it does
    ------------
    Reports constructions of ``torch.nn.DataParallel``.

    Why it matters
    --------------
    One process copies the model to each device in every forward pass, and its threads share one interpreter.
    Buffers that the copies write, such as running statistics, are kept of the first device only. The documentation
    of torch recommends ``DistributedDataParallel`` also on one machine.

    Example
    -------
    ::

        model = nn.DataParallel(model)

    Fix
    ---
    Start one process for each device with ``torchrun``, and wrap the model there::

        model = nn.parallel.DistributedDataParallel(model, device_ids=[local_rank])

    Known false alarms
    ------------------
    Programs that never see more than one device: there ``DataParallel`` calls the model directly.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.DataParallel.html
    """

    id = "data-parallel-module"
    since = "0.1"
    severity = Severity.SPEED
    account = "time"
    confidence = Confidence.LOW

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return advice.data_parallel_module(program)
