"""Tensors beside the trained ones that no optimizer should hold: a probe of the inputs, and the context of a task."""
import torch
from torch.nn import functional as F

torch.manual_seed(0)
inputs = torch.randn(400, 8)
targets = (torch.sin(inputs @ torch.randn(8)) > 0).float()


def attacked():
    leaves = {"hidden": torch.randn(8, 16) * 0.3, "out": torch.randn(16) * 0.3, "probe": torch.zeros(40, 8)}
    for leaf in leaves.values():
        leaf.requires_grad_()
    optimizer = torch.optim.Adam([leaves["hidden"], leaves["out"]], 1e-2)

    def score(batch):
        return torch.tanh(batch @ leaves["hidden"]) @ leaves["out"]

    for step in range(200):
        rows = slice(step % 10 * 40, step % 10 * 40 + 40)
        leaves["probe"].grad = None
        clean = F.binary_cross_entropy_with_logits(score(inputs[rows] + leaves["probe"]), targets[rows])
        optimizer.zero_grad()
        clean.backward()
        moved = inputs[rows] + 0.05 * leaves["probe"].grad.sign()
        loss = F.binary_cross_entropy_with_logits(score(moved), targets[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(clean.item(), loss.item())


def adapted():
    params = {"hidden": torch.randn(5, 32) * 0.5, "out": torch.randn(32, 1) * 0.2, "context": torch.zeros(4)}
    for param in params.values():
        param.requires_grad_()
    meta = torch.optim.Adam([params["hidden"], params["out"]], 3e-3)

    def curve(points, context):
        both = torch.cat([points, context.expand(len(points), 4)], 1)
        return torch.tanh(both @ params["hidden"]) @ params["out"]

    for _step in range(200):
        total = torch.zeros(())
        for _task in range(4):
            points = torch.rand(20, 1) * 6 - 3
            heights = torch.rand(1) * 3 * torch.sin(points)
            inner = ((curve(points[:10], params["context"]) - heights[:10]) ** 2).mean()
            (slope,) = torch.autograd.grad(inner, params["context"], create_graph=True)
            context = params["context"] - 0.5 * slope
            total = total + ((curve(points[10:], context) - heights[10:]) ** 2).mean()
        meta.zero_grad()
        total.backward()
        meta.step()
    print(total.item() / 4)


attacked()
adapted()
