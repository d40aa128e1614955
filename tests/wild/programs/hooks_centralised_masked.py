"""Hooks everywhere: centralised gradients by tensor hooks, masks by full backward hooks, global module hooks for statistics."""
import torch
from torch import nn
from torch.nn.modules import module as nn_module

torch.manual_seed(1)
stats = {}


def global_forward(m, args, out):
    if isinstance(m, nn.Linear) and m.training:
        stats.setdefault("forward", []).append(float(out.detach().std()))


def global_backward(m, gin, gout):
    if isinstance(m, nn.Linear):
        stats.setdefault("backward", []).append(float(gout[0].norm()))


handles = [nn_module.register_module_forward_hook(global_forward), nn_module.register_module_full_backward_hook(global_backward)]
net = nn.Sequential(nn.Linear(12, 40), nn.Mish(), nn.Linear(40, 40), nn.Mish(), nn.Linear(40, 3))
for p in net.parameters():
    if p.dim() > 1:
        p.register_hook(lambda g: g - g.mean(tuple(range(1, g.dim())), keepdim=True))
keep = (torch.rand(40, 40) > 0.5).float()
net[2].weight.data.mul_(keep)
net[2].weight.register_hook(lambda g: g * keep)
rescale = net[1].register_full_backward_hook(lambda m, gin, gout: tuple(2 * g if g is not None else None for g in gin))
X = torch.randn(500, 12)
Y = X[:, :3].cumsum(1).argmax(1)
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
multi = torch.autograd.graph.register_multi_grad_hook(list(net[0].parameters()), lambda gs: stats.setdefault("multi", []).append(len(gs)))
pre = opt.register_step_pre_hook(lambda o, a, k: stats.setdefault("steps", []).append(o.param_groups[0]["lr"]))
for epoch in range(6):
    for b in torch.randperm(500).split(50):
        loss = nn.functional.cross_entropy(net(X[b]), Y[b])
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, f"{loss.item():.4f}", len(stats["forward"]), len(stats["backward"]), len(stats["multi"]), len(stats["steps"]))
    if epoch == 2:
        rescale.remove()
for h in (*handles, multi, pre):
    h.remove()
net.eval()
with torch.no_grad():
    print("accuracy", (net(X).argmax(1) == Y).float().mean().item(), "pruned weights moved", (net[2].weight * (1 - keep)).abs().max().item())
