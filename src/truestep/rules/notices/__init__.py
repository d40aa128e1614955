"""Rules that only `truestep lint` reports, on the evidence of the documentation and the warnings of torch.

- `data_parallel_module`: one process with several devices.
- `deprecated_amp_api`: old names of mixed precision.
- `deprecated_backward_hook`: hooks with gradients of the last operation only.
- `deprecated_torchscript`: models compiled by `torch.jit`.
- `kl_reduction_mean`: a KL divergence that is divided by the number of classes.
- `timing_without_synchronise`: times of work that is only queued.
- `unsafe_load`: files that may run code.
- `whole_model_pickled`: files with a model itself, not its weights.
"""

from truestep.rules.notices import (
    data_parallel_module,
    deprecated_amp_api,
    deprecated_backward_hook,
    deprecated_torchscript,
    kl_reduction_mean,
    timing_without_synchronise,
    unsafe_load,
    whole_model_pickled,
)

__all__ = [
    "data_parallel_module",
    "deprecated_amp_api",
    "deprecated_backward_hook",
    "deprecated_torchscript",
    "kl_reduction_mean",
    "timing_without_synchronise",
    "unsafe_load",
    "whole_model_pickled",
]
