from __future__ import annotations

from collections.abc import Iterator

from truestep.findings import Confidence, Severity
from truestep.rules._notice import Notice
from truestep.rules._syntax import stored
from truestep.syntax import Program, Suspicion


class UnsafeLoad(Notice):
    """A file that the program has not written is loaded in a way that runs the code in it.

    What it does
    ------------
    Reports calls of ``torch.load`` with ``weights_only=False``, unless the file saves to the same path or the data is
    in memory: with medium confidence if a function downloads the file, and with low confidence for other files.
    ``torch.hub.load_state_dict_from_url`` with ``weights_only=False`` is a download too.

    Why it matters
    --------------
    A file of torch can contain any function call, and ``weights_only=False`` makes these calls without a warning,
    before the program has seen a tensor. The default, ``weights_only=True``, refuses such a file.

    Example
    -------
    ::

        path = hf_hub_download("someone/model", "model.pt")
        state = torch.load(path, weights_only=False)

    Fix
    ---
    Leave out the argument. If the error names a class that is needed, allow this class only::

        torch.serialization.add_safe_globals([Vocabulary])
        state = torch.load(path, weights_only=True)

    Known false alarms
    ------------------
    Files of a source that is trusted, with objects for which ``weights_only=True`` is not possible.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.load.html
    """

    id = "unsafe-load"
    since = "0.1"
    severity = Severity.WARNING
    account = "state"
    confidence = Confidence.MEDIUM

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return stored.unsafe_load(program)
