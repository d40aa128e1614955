"""Healthy: activation maximisation with Adam on the input alone; the trained network is neither frozen nor stepped."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(2)
torch.set_num_threads(1)

net = nn.Sequential(nn.Linear(16, 48), nn.BatchNorm1d(48), nn.ReLU(), nn.Linear(48, 4))
prototypes = torch.randn(4, 16)


def batch(n=64):
    y = torch.randint(0, 4, (n,))
    return prototypes[y] + 0.8 * torch.randn(n, 16), y


opt = torch.optim.Adam(net.parameters(), lr=5e-3)
for _ in range(80):
    x, y = batch()
    opt.zero_grad()
    loss = F.cross_entropy(net(x), y)
    loss.backward()
    opt.step()
print("classifier loss", round(loss.item(), 4))

# what does the network want to see for every class?
net.eval()
dream = torch.zeros(4, 16, requires_grad=True)
dream_opt = torch.optim.Adam([dream], lr=0.1)
wanted = torch.arange(4)
for i in range(60):
    dream_opt.zero_grad()
    objective = F.cross_entropy(net(dream), wanted) + 0.02 * dream.pow(2).sum(1).mean()
    objective.backward()
    dream_opt.step()

cos = F.cosine_similarity(dream.detach()[:, None], prototypes[None], dim=-1)
print("dream closest to its prototype:", (cos.argmax(1) == wanted).tolist(), "objective", round(objective.item(), 4))
