from __future__ import annotations

from collections.abc import Iterator

from truestep.findings import Severity
from truestep.rules._notice import Notice
from truestep.rules._syntax import advice
from truestep.syntax import Program, Suspicion


class DeprecatedAmpApi(Notice):
    """Mixed precision is used by the names of ``torch.cuda.amp``, which are deprecated.

    What it does
    ------------
    Reports calls of ``autocast``, ``GradScaler``, ``custom_fwd`` and ``custom_bwd`` of ``torch.cuda.amp`` and
    ``torch.cpu.amp``. Not reported: names that a file imports as the second choice, for older versions of torch.

    Why it matters
    --------------
    Each call warns since torch 2.4 that it is deprecated, and that a later version may remove it. The old
    ``autocast`` is for one type of device, and has no effect on the operations of others.

    Example
    -------
    ::

        with torch.cuda.amp.autocast():
            loss = criterion(model(x), y)

    Fix
    ---
    Name the type of the device; `truestep lint --fix` does it for the whole file::

        with torch.amp.autocast("cuda"):
            loss = criterion(model(x), y)

    Known false alarms
    ------------------
    Code that must run on versions of torch before 2.4.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/amp.html
    """

    id = "deprecated-amp-api"
    since = "0.1"
    severity = Severity.WARNING
    account = "loss"

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return advice.deprecated_amp_api(program)
