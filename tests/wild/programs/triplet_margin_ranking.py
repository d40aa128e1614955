"""Metric learning three ways on one encoder: triplet, cosine embedding and margin ranking losses in turns by epoch."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(2)
CENTRES = torch.randn(5, 12)


def draw(n):
    y = torch.randint(0, 5, (n,))
    return CENTRES[y] + 0.9 * torch.randn(n, 12), y


def anchors(n):
    x, y = draw(n)
    pos = CENTRES[y] + 0.9 * torch.randn(n, 12)
    other = (y + torch.randint(1, 5, (n,))) % 5
    return x, pos, CENTRES[other] + 0.9 * torch.randn(n, 12)


encoder = nn.Sequential(nn.Linear(12, 32), nn.PReLU(), nn.Linear(32, 8))
scorer = nn.Bilinear(8, 8, 1)
losses = {
    "triplet": nn.TripletMarginWithDistanceLoss(distance_function=lambda a, b: 1 - F.cosine_similarity(a, b), margin=0.4),
    "cosine": nn.CosineEmbeddingLoss(margin=0.2),
    "ranking": nn.MarginRankingLoss(margin=1.0),
}
optimizer = torch.optim.SGD([*encoder.parameters(), *scorer.parameters()], lr=0.05, momentum=0.9)


def recall_at_1():
    encoder.eval()
    with torch.inference_mode():
        x, y = draw(200)
        z = F.normalize(encoder(x), dim=1)
        sim = z @ z.T - 2 * torch.eye(200)
        hit = (y[sim.argmax(1)] == y).float().mean().item()
    encoder.train()
    return hit


print("before", round(recall_at_1(), 3))
for epoch in range(9):
    name = list(losses)[epoch % 3]
    running = []
    for _ in range(20):
        a, p, n = (encoder(t) for t in anchors(32))
        if name == "triplet":
            loss = losses[name](a, p, n)
        elif name == "cosine":
            sign = torch.cat([torch.ones(32), -torch.ones(32)])
            loss = losses[name](torch.cat([a, a]), torch.cat([p, n]), sign)
        else:
            loss = losses[name](scorer(a, p), scorer(a, n), torch.ones(32, 1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running.append(loss.item())
    print(epoch, name, round(sum(running) / len(running), 4))
print("after", round(recall_at_1(), 3))
