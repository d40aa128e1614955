"""Healthy: ranking by lambdas, the gradients of which are applied to a window of outputs; lists end with the window."""

import torch
from torch import nn

torch.manual_seed(0)
weights = torch.randn(6)
queries = [(x := torch.randn(int(n), 6), (x @ weights + 0.3 * torch.randn(int(n)) > 0).float()[:, None])
           for n in torch.randint(5, 12, (120,))]
net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(6):
    outputs, lambdas = [], []
    right = pairs = 0
    optimizer.zero_grad()
    for at in torch.randperm(len(queries)).tolist():
        x, y = queries[at]
        score = net(x)
        outputs.append(score)
        with torch.no_grad():
            above = (y > y.T).float()
            push = above / (1 + torch.exp(score - score.T))
            lambdas.append(push.sum(0)[:, None] - push.sum(1, keepdim=True))
            right += ((score > score.T).float() * above).sum().item()
            pairs += above.sum().item()
        if len(outputs) == 20:
            for score, gradient in zip(outputs, lambdas, strict=True):
                score.backward(gradient / 20)
            optimizer.step()
            optimizer.zero_grad()
            outputs, lambdas = [], []
    print(epoch, f"pairs in the right order: {right / pairs:.3f}")
