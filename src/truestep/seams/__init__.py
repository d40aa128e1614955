"""The places where torch is touched, one module per subject. Importing them imports no torch.

| module | subject |
| --- | --- |
| `patch` | attributes that are set and restored |
| `backward`, `step`, `zero_grad`, `scaler` | backward passes, steps of optimizers, cleared gradients, `GradScaler` |
| `module_call` | calls of modules |
| `code` | code of torch that is rewritten for them, and other code in place of functions of the program |
| `loader` | batches and passes of loaders |
| `wrappers` | models inside torch.compile, DDP and others |
| `divided`, `fsdp` | tensors that are divided over ranks, and parameters under FSDP |
| `tracing` | code that TorchDynamo leaves alone |
| `saving` | files of state, and exported models |
| `ranks` | the process group, DistributedDataParallel, operations over ranks |
| `refs` | weak references to tensors |
"""

from truestep.seams import backward, loader, module_call, saving, scaler, step, tracing, wrappers, zero_grad

__all__ = ["backward", "loader", "module_call", "saving", "scaler", "step", "tracing", "wrappers", "zero_grad"]
