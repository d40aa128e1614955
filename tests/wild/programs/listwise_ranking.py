"""Healthy: ListNet, a softmax over the documents of one query (dim=0), lists of any length, one of them a single document."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(22)
torch.set_num_threads(1)

weights = torch.randn(9)
lengths = [5, 8, 1, 12, 3, 7, 9, 1, 6, 4, 11, 2] * 4
queries = []
for length in lengths:
    documents = torch.randn(length, 9)
    queries.append((documents, documents @ weights + 0.3 * torch.randn(length)))

scorer = nn.Sequential(nn.Linear(9, 24), nn.ReLU(), nn.Linear(24, 1))
attention = nn.Sequential(nn.Linear(9, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.Adam([*scorer.parameters(), *attention.parameters()], lr=4e-3)

for epoch in range(5):
    total = 0.0
    for documents, relevance in queries:
        scores = scorer(documents)
        listwise = F.kl_div(
            F.log_softmax(scores, dim=0), F.softmax(relevance.unsqueeze(1), dim=0), reduction="sum"
        )
        weight = torch.softmax(attention(documents), dim=0)  # attention pooling over the instances of a bag
        bag = F.mse_loss((weight * scores).sum(), relevance.max())
        loss = listwise + 0.1 * bag
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: {total / len(queries):.3f}")

with torch.no_grad():
    hits = sum(scorer(d).squeeze(1).argmax().item() == r.argmax().item() for d, r in queries)
print(f"best document first: {hits}/{len(queries)}")
