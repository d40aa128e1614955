"""Healthy: FSDP1 in several styles of sharding, clearing, accumulating and clipping, with evaluation between."""
import contextlib

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp import MixedPrecision, ShardingStrategy

torch.set_num_threads(1)
dist.init_process_group("gloo")
low = MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16)
styles = [
    {"original": False, "to_none": True, "window": 1},
    {"original": False, "to_none": False, "window": 1},
    {"original": True, "to_none": True, "window": 1},
    {"original": True, "to_none": False, "window": 1, "foreach": True},
    {"original": False, "to_none": True, "window": 3, "no_sync": True},
    {"original": True, "to_none": True, "window": 2, "no_sync": True, "fused": True},
    {"original": True, "to_none": False, "window": 2, "no_sync": True},
    {"original": False, "to_none": True, "window": 2},
    {"original": True, "to_none": True, "window": 2},
    {"original": False, "to_none": True, "window": 1, "sharding_strategy": ShardingStrategy.NO_SHARD},
    {"original": True, "to_none": False, "window": 1, "sharding_strategy": ShardingStrategy.SHARD_GRAD_OP},
    {"original": True, "to_none": True, "window": 1, "mixed_precision": low},
]
losses = []
for number, style in enumerate(styles):
    torch.manual_seed(number)
    options = {key: style[key] for key in ("sharding_strategy", "mixed_precision") if key in style}
    options |= {"device_id": torch.device("cpu"), "use_orig_params": style["original"]}
    hidden = FSDP(nn.Sequential(nn.Linear(32, 32), nn.Dropout(0.1)), **options)
    model = FSDP(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), hidden, nn.ReLU(), nn.Linear(32, 3)), **options)
    kernels = {key: style[key] for key in ("foreach", "fused") if key in style}
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, **kernels)
    window = style["window"]
    torch.manual_seed(100 * number + dist.get_rank())
    for _ in range(25):
        optimizer.zero_grad(set_to_none=style["to_none"])
        for micro_step in range(window):
            waits = style.get("no_sync") and micro_step < window - 1
            with model.no_sync() if waits else contextlib.nullcontext():
                x = torch.randn(16, 8)
                loss = F.cross_entropy(model(x).float(), x[:, :3].argmax(1)) / window
                loss.backward()
        model.clip_grad_norm_(1.0)
        optimizer.step()
    model.eval()
    with torch.no_grad():
        model(torch.randn(4, 8))
    losses.append(f"{loss.item() * window:.2f}")
if dist.get_rank() == 0:
    print("losses", *losses, flush=True)
dist.destroy_process_group()
