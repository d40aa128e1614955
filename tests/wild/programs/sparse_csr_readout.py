"""A sparse linear layer: the weight is a CSR tensor made from trainable values on a fixed connectivity pattern."""
import math

import torch
from torch import nn


class SparseLinear(nn.Module):
    """y = x W^T where only `density` of W exists; the pattern is a pair of buffers."""

    def __init__(self, n_in, n_out, density=0.2):
        super().__init__()
        mask = torch.rand(n_out, n_in) < density
        mask[:, 0] = True
        csr = mask.float().to_sparse_csr()
        self.shape = (n_out, n_in)
        self.register_buffer("crow", csr.crow_indices())
        self.register_buffer("col", csr.col_indices())
        self.values = nn.Parameter(torch.randn(csr.values().numel()) / math.sqrt(n_in * density))
        self.bias = nn.Parameter(torch.zeros(n_out))

    def forward(self, x):
        w = torch.sparse_csr_tensor(self.crow, self.col, self.values, self.shape)
        return (w @ x.t()).t() + self.bias


class CooRow(nn.Module):
    """One more layer, with the weight itself a sparse COO parameter."""

    def __init__(self, n_in, n_out):
        super().__init__()
        dense = torch.randn(n_out, n_in) * (torch.rand(n_out, n_in) < 0.5) * 0.3
        self.weight = nn.Parameter(dense.to_sparse_coo().coalesce())

    def forward(self, x):
        return torch.sparse.mm(self.weight, x.t()).t()


torch.manual_seed(3)
net = nn.Sequential(SparseLinear(40, 120), nn.Tanh(), CooRow(120, 4))
teacher = nn.Sequential(nn.Linear(40, 30), nn.Tanh(), nn.Linear(30, 4)).requires_grad_(False)
dense_params = [p for p in net.parameters() if not p.is_sparse]
sparse_params = [p for p in net.parameters() if p.is_sparse]
optims = [torch.optim.Adam(dense_params, lr=5e-3), torch.optim.SGD(sparse_params, lr=0.05)]
for step in range(240):
    x = torch.randn(64, 40)
    y = teacher(x)
    loss = ((net(x) - y) ** 2).mean()
    for o in optims:
        o.zero_grad()
    loss.backward()
    for o in optims:
        o.step()
    if step % 60 == 0:
        print(step, "%.4f" % loss.item())
print("final %.4f, variance of the targets %.4f" % (loss.item(), y.var().item()))
