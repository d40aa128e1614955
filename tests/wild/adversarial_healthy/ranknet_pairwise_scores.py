"""RankNet: differences of all pairs of scores within a query."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
scorer = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))
opt = torch.optim.SGD(scorer.parameters(), lr=0.05)
for query in range(50):
    documents = torch.randn(12, 5)
    relevance = documents[:, 0]
    s = scorer(documents)
    difference = s - s.t()
    label = (relevance[:, None] > relevance[None, :]).float()
    loss = F.binary_cross_entropy_with_logits(difference, label)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
