"""Attention with a mask of padding over the queries; the keys of padding keep their weights."""
import torch
from torch import nn

torch.manual_seed(2)
torch.set_num_threads(1)
SIZE, LONGEST = 16, 14
lengths = torch.randint(4, LONGEST, (640,))
tokens = torch.randint(1, 20, (640, LONGEST)) * (torch.arange(LONGEST) < lengths[:, None])
labels = ((tokens > 14).sum(1) / lengths > 0.3).long()


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(SIZE, SIZE) for _ in range(3))

    def forward(self, x, padding):
        scores = torch.bmm(self.q(x), self.k(x).transpose(1, 2)) / SIZE**0.5
        scores = scores.masked_fill(padding.unsqueeze(-1), -1e9)  # error: masked-scores-in-softmax
        return torch.bmm(scores.softmax(dim=-1), self.v(x))


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.layer, self.head = nn.Embedding(20, SIZE, padding_idx=0), Layer(), nn.Linear(SIZE, 2)

    def forward(self, x):
        padding = x == 0
        h = self.table(x)
        h = (h + self.layer(h, padding)).masked_fill(padding.unsqueeze(-1), 0.0)
        return self.head(h.sum(1) / (~padding).sum(1, keepdim=True))


model, loss_of = Classifier(), nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(100):
    rows = torch.randperm(540)[:32]
    loss = loss_of(model(tokens[rows]), labels[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    print(loss.item(), (model(tokens[540:]).argmax(1) == labels[540:]).float().mean().item())
