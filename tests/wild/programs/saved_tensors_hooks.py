"""Healthy: saved_tensors_hooks: activations packed to bfloat16 and unpacked once in backward."""
import torch
import torch.nn as nn
from torch.autograd.graph import saved_tensors_hooks

torch.manual_seed(0)
torch.set_num_threads(1)

stats = {"packed": 0, "unpacked": 0, "saved_bytes": 0}


def pack(t):
    stats["packed"] += 1
    if t.dtype is torch.float32 and not isinstance(t, nn.Parameter) and t.is_leaf is False:
        stats["saved_bytes"] += t.numel() * 2
        return t.dtype, t.to(torch.bfloat16)
    return t.dtype, t


def unpack(packed):
    stats["unpacked"] += 1
    dtype, t = packed
    return t.to(dtype)


net = nn.Sequential(nn.Conv1d(2, 16, 5, padding=2), nn.GELU(), nn.Conv1d(16, 16, 5, padding=2), nn.GELU(), nn.Conv1d(16, 1, 1))
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
t = torch.arange(64.0)

for step in range(60):
    freq, phase = 0.1 + 0.4 * torch.rand(32, 1), 6.28 * torch.rand(32, 1)
    clean = torch.sin(freq * t + phase)
    noisy = torch.stack([clean + 0.3 * torch.randn_like(clean), clean + 0.3 * torch.randn_like(clean)], 1)
    with saved_tensors_hooks(pack, unpack):
        loss = (net(noisy).squeeze(1) - clean).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 20 == 0:
        print(step, round(loss.item(), 4))

print("denoising mse", round(loss.item(), 4), "| saved KiB by packing", stats["saved_bytes"] // 1024,
      "| packed == unpacked:", stats["packed"] == stats["unpacked"])
