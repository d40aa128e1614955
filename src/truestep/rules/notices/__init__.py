"""Rules that only `truestep lint` reports, on the evidence of the documentation and the warnings of torch.

- `data_parallel_module`: one process with several devices.
- `deprecated_amp_api`: old names of mixed precision.
- `deprecated_backward_hook`: hooks with gradients of the last operation only.
- `timing_without_synchronise`: times of work that is only queued.
"""

from truestep.rules.notices import (
    data_parallel_module,
    deprecated_amp_api,
    deprecated_backward_hook,
    timing_without_synchronise,
)

__all__ = ["data_parallel_module", "deprecated_amp_api", "deprecated_backward_hook", "timing_without_synchronise"]
