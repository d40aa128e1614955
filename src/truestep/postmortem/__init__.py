"""Of what a run died: what an error of torch does not say, from what its frames still hold when it is over.

One family of errors per file. Where an error is not known, or the evidence is not certain, nothing is said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from truestep.findings import PostMortem

if TYPE_CHECKING:
    from truestep.probes import Scene

__all__ = ["examine"]


def examine(error: BaseException, scene: Scene) -> PostMortem | None:
    """Return what an error of torch that ended a run was caused by; None where that is not certain.

    Reads the frames of the traceback and runs nothing of the program. A failure in here becomes an internal error.

    Args:
        error: the exception, with its traceback.
        scene: what the probes saw.
    """
    try:
        from truestep.postmortem._families import explain

        return explain(error, scene)
    except Exception:
        scene.fail()
        return None
