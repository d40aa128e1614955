"""Post-mortems: the cause of a torch error that ended a run, found from the values that its frames still hold.

One family of errors per file, listed in `families`; `evidence/` reads the frames for all of them. An unknown error, or
uncertain evidence, gives no post-mortem.

second_backward, roots, anomaly  backward passes: twice, without a beginning, NaN
in_place                         values that were overwritten before the backward pass
shapes, places, states, labels   tensors that do not fit: shape, device or dtype, weights of a file, classes
batch_of_one, memory             batch normalization of one sample; out of memory
catalogue                        the kinds of post-mortems as text, without torch
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from truestep.findings import PostMortem

if TYPE_CHECKING:
    from truestep.probes import Scene

__all__ = ["examine"]


def examine(error: BaseException, scene: Scene) -> PostMortem | None:
    """Return the cause of a torch error that ended a run; None if it is not certain.

    Reads the frames of the traceback and runs no code of the program. A failure in here becomes an internal error.

    Args:
        error: the exception, with its traceback.
        scene: the state of the probes.
    """
    try:
        from truestep.postmortem.families import explain

        return explain(error, scene)
    except Exception:
        scene.fail()
        return None
