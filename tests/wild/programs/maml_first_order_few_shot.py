"""First-order MAML for few-shot classification: functional_call on adapted weights, inner gradients by autograd.grad without graphs."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call

WAYS, SHOTS, QUERIES, DIM = 3, 5, 10, 8


def sample_task(g):
    centres = torch.randn(WAYS, DIM, generator=g)
    labels = torch.arange(WAYS).repeat_interleave(SHOTS + QUERIES)
    points = centres[labels] + 0.4 * torch.randn(len(labels), DIM, generator=g)
    points, labels = points.view(WAYS, -1, DIM), labels.view(WAYS, -1)
    support = points[:, :SHOTS].reshape(-1, DIM), labels[:, :SHOTS].reshape(-1)
    query = points[:, SHOTS:].reshape(-1, DIM), labels[:, SHOTS:].reshape(-1)
    return support, query


def inner_loop(net, weights, x, y, steps=3, lr=0.3):
    for _ in range(steps):
        loss = F.cross_entropy(functional_call(net, weights, (x,)), y)
        grads = torch.autograd.grad(loss, tuple(weights.values()))
        weights = {k: w - lr * g for (k, w), g in zip(weights.items(), grads)}
    return weights


def evaluate(net, g, tasks=10):
    hits = 0
    for _ in range(tasks):
        (xs, ys), (xq, yq) = sample_task(g)
        adapted = inner_loop(net, dict(net.named_parameters()), xs, ys)
        with torch.no_grad():
            hits += (functional_call(net, adapted, (xq,)).argmax(1) == yq).sum().item()
    return hits / (tasks * WAYS * QUERIES)


def train(net, iterations=40, meta_batch=4):
    g = torch.Generator().manual_seed(1)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for it in range(iterations):
        optimizer.zero_grad()
        total = 0.0
        for _ in range(meta_batch):
            (xs, ys), (xq, yq) = sample_task(g)
            adapted = inner_loop(net, dict(net.named_parameters()), xs, ys)
            loss = F.cross_entropy(functional_call(net, adapted, (xq,)), yq) / meta_batch
            loss.backward()
            total += loss.item()
        optimizer.step()
        if it % 10 == 0:
            print(f"iteration {it} query loss {total:.3f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(DIM, 32), nn.ReLU(), nn.Linear(32, WAYS))
    held_out = torch.Generator().manual_seed(99)
    before = evaluate(net, held_out)
    train(net)
    print(f"accuracy on new tasks {before:.3f} -> {evaluate(net, held_out):.3f}")
