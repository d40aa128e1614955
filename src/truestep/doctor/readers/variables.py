"""Environment variables that change the results, the speed or the device of torch."""

from __future__ import annotations

import os
from collections.abc import Mapping

_PREFIXES = (
    *("CUDA_", "PYTORCH_", "TORCH_", "TORCHINDUCTOR_", "TORCHDYNAMO_", "CUBLAS_", "CUDNN_", "NCCL_", "GLOO_"),
    *("OMP_", "KMP_", "MKL_", "GOMP_", "OPENBLAS_", "ONEDNN_", "DNNL_", "HIP_", "ROCR_", "HSA_", "TRITON_", "AOTI"),
)
_NAMES = {
    *("NVIDIA_TF32_OVERRIDE", "NVIDIA_VISIBLE_DEVICES", "NUMEXPR_NUM_THREADS", "LD_PRELOAD", "CXX", "TMPDIR"),
    *("WORLD_SIZE", "RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TRUESTEP_WATCH"),
}
_PLACES = {"CUDA_HOME", "CUDA_PATH", "CUDA_VERSION", "TORCH_HOME", "NCCL_VERSION", "CUDA_ROOT"}
"""Set by images and shells: paths and versions without effect on training."""


_SECRET = ("TOKEN", "SECRET", "PASSWORD", "KEY", "URL")
"""Values of variables with these words in their names are not shown, since sheets are sent to others."""


def variables(environment: Mapping[str, str] = os.environ) -> tuple[tuple[str, str], ...]:
    """Return names and values of the variables that affect torch, sorted by name.

    >>> variables({"OMP_NUM_THREADS": "4", "HOME": "/root", "CUDA_HOME": "/usr/local/cuda"})
    (('OMP_NUM_THREADS', '4'),)
    """
    return tuple(
        (name, "(not shown)" if any(word in name for word in _SECRET) else environment[name])
        for name in sorted(environment)
        if (name.startswith(_PREFIXES) or name in _NAMES) and name not in _PLACES
    )
