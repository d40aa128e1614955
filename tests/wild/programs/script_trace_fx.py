"""The same recurrent classifier trained as a scripted module, as a traced one and as an fx-transformed one."""
import operator

import torch
import torch.fx
from torch import nn, Tensor
from typing import List, Tuple


class Cell(nn.Module):
    def __init__(self, i: int, h: int):
        super().__init__()
        self.gates = nn.Linear(i + h, 3 * h)

    def forward(self, x: Tensor, state: Tensor) -> Tuple[Tensor, Tensor]:
        z, r, n = self.gates(torch.cat([x, state], 1)).chunk(3, 1)
        new = torch.sigmoid(z) * state + (1 - torch.sigmoid(z)) * torch.tanh(n * torch.sigmoid(r))
        return new, new


class Scripted(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = Cell(3, 24)
        self.drop = nn.Dropout(0.1)
        self.out = nn.Linear(24, 2)

    def forward(self, seq: Tensor) -> Tensor:
        state = torch.zeros(seq.size(1), 24)
        outs: List[Tensor] = []
        for x in seq:
            y, state = self.cell(x, state)
            outs.append(y)
        return self.out(self.drop(torch.stack(outs).mean(0)))


def data(n=64):
    seq = torch.randn(12, n, 3)
    return seq, (seq[:, :, 0].cumsum(0).amax(0) > 2.0).long()


def fit(model, make, steps=50):
    optim = torch.optim.Adam(model.parameters(), lr=1e-2)
    model.train()
    for k in range(steps):
        inputs, labels = make()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        optim.zero_grad()
        loss.backward()
        optim.step()
    model.eval()
    with torch.no_grad():
        inputs, labels = make()
        return (model(inputs).argmax(1) == labels).float().mean().item()


torch.manual_seed(0)
scripted = torch.jit.script(Scripted())
print("scripted %.2f" % fit(scripted, data))
flat = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 2))
points = lambda: (lambda x: (x, (x[:, 0] * x[:, 1] > 0).long()))(torch.randn(64, 5))
traced = torch.jit.trace(flat, torch.randn(64, 5))
print("traced %.2f" % fit(traced, points, 120))
graph = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 2)))
for node in graph.graph.nodes:
    if node.op == "call_module" and isinstance(graph.get_submodule(node.target), nn.ReLU):
        with graph.graph.inserting_after(node):
            extra = graph.graph.call_function(operator.mul, (node, 1.5))
        node.replace_all_uses_with(extra, delete_user_cb=lambda n: n is not extra)
graph.recompile()
print("fx %.2f" % fit(graph, points, 120))
torch.jit.freeze(scripted)
