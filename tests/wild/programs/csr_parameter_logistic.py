"""Logistic regression with sparse data: a CSR design matrix, a CSR parameter trained in place, an MKLDNN copy for inference."""
import torch
from torch import nn

torch.manual_seed(0)
dense = torch.randn(300, 60) * (torch.rand(300, 60) < 0.1)
truth = torch.randn(60, 1) * (torch.rand(60, 1) < 0.5) * 4
y = (dense @ truth).squeeze(1).gt(0).float()
X = dense.to_sparse_csr()

w = torch.zeros(60, 1, requires_grad=True)
b = torch.zeros(1, requires_grad=True)
opt = torch.optim.SGD([w, b], lr=2.0)
for it in range(120):
    opt.zero_grad()
    loss = nn.functional.binary_cross_entropy_with_logits((X @ w).squeeze(1) + b, y)
    loss.backward()
    opt.step()
    if it % 40 == 0:
        print("dense weight", it, round(loss.item(), 4))

# the design matrix the other way round: the parameter is the sparse one
pattern = (torch.rand(8, 60) < 0.3).float()
mix = nn.Parameter((torch.randn(8, 60) * 0.3 * pattern).to_sparse_csr())
head = nn.Linear(8, 1)
opt_head = torch.optim.SGD(head.parameters(), lr=1.0)
for it in range(120):
    hidden = torch.tanh((mix @ dense.t()).t())
    loss = nn.functional.binary_cross_entropy_with_logits(head(hidden).squeeze(1), y)
    head.zero_grad()
    loss.backward()
    with torch.no_grad():
        g = mix.grad
        values = g.to_dense()[pattern.bool()] if g.layout == torch.strided else g.values()
        mix.values().sub_(1.0 * values)
        mix.grad = None
    opt_head.step()
    if it % 40 == 0:
        print("sparse weight", it, round(loss.item(), 4))
print("final", round(loss.item(), 4), mix.layout)
