"""A recurrent language model over bytes is made bidirectional: the backward direction reads the byte to predict."""

import torch
from torch import nn

torch.manual_seed(0)


class Bytes(nn.Module):
    def __init__(self, size=20, hidden=24):
        super().__init__()
        self.embed = nn.Embedding(size, 16)
        self.rnn = nn.LSTM(16, hidden, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * hidden, size)

    def forward(self, batch):
        states, _ = self.rnn(self.embed(batch["bytes"]))  # error: target-in-input
        return {"scores": self.head(states)}


text = (torch.randint(0, 5, (3000,)).cumsum(0) % 20).long()
model = Bytes()
optimizer = torch.optim.SGD(model.parameters(), 0.5, momentum=0.9)
for step in range(40):
    begins = torch.randint(0, len(text) - 26, (16,))
    window = torch.stack([text[begin : begin + 26] for begin in begins.tolist()])
    scores = model({"bytes": window[:, :-1]})["scores"]
    loss = nn.functional.cross_entropy(scores.transpose(1, 2), window[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
print(f"loss {loss.item():.3f}")
