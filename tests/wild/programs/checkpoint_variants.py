"""torch.utils.checkpoint in its variants: context functions, selective policies, no RNG, nested, beside saved-tensor hooks."""
import functools
import torch
import torch.nn as nn
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts, set_checkpoint_early_stop


class Block(nn.Module):
    def __init__(self, w, how):
        super().__init__()
        self.norm, self.fc1, self.fc2 = nn.RMSNorm(w), nn.Linear(w, 2 * w), nn.Linear(2 * w, w)
        self.how = how

    def inner(self, x):
        return self.fc2(torch.nn.functional.dropout(torch.relu(self.fc1(self.norm(x))), 0.1, self.training))

    def nested(self, x):
        return checkpoint(self.inner, x, use_reentrant=False)

    def forward(self, x):
        if self.how == "selective":
            def policy(ctx, op, *args, **kwargs):
                keep = op in (torch.ops.aten.mm.default, torch.ops.aten.addmm.default)
                return CheckpointPolicy.MUST_SAVE if keep else CheckpointPolicy.PREFER_RECOMPUTE

            context = functools.partial(create_selective_checkpoint_contexts, policy)
            return x + checkpoint(self.inner, x, use_reentrant=False, context_fn=context)
        if self.how == "nested":
            return x + checkpoint(self.nested, x, use_reentrant=False)
        if self.how == "reentrant":
            return x + checkpoint(self.inner, x, use_reentrant=True, preserve_rng_state=True)
        with torch.autograd.graph.save_on_cpu():
            return x + self.inner(x)


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 24), *[Block(24, h) for h in ("selective", "nested", "reentrant", "cpu")], nn.Linear(24, 1))
opt = torch.optim.AdamW(net.parameters(), lr=3e-3)
for step in range(80):
    x = torch.randn(48, 6)
    y = x.sin().sum(1, keepdim=True)
    with set_checkpoint_early_stop(step % 2 == 0):
        loss = nn.functional.mse_loss(net(x), y)
        opt.zero_grad()
        loss.backward()
    opt.step()
    if step % 20 == 0:
        print(step, round(loss.item(), 4))
net.eval()
with torch.no_grad():
    x = torch.randn(500, 6)
    print("test", round(nn.functional.mse_loss(net(x), x.sin().sum(1, keepdim=True)).item(), 4))
