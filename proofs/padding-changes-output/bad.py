"""Predict the mean of sequences of numbers from their tokens; they are padded to the longest of their batch."""

import sys

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

torch.set_num_threads(1)
seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)

rows = [torch.randint(1, 9, (int(n),)) for n in torch.randint(4, 40, (1200,))]
means = torch.stack([row.float().mean() for row in rows])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(9, 16), nn.Linear(16, 1)

    def forward(self, tokens):
        return self.head(self.embed(tokens).mean(1))


model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
for _ in range(300):
    chosen = torch.randint(0, 1000, (32,))
    batch = pad_sequence([rows[i] for i in chosen], batch_first=True)
    optimizer.zero_grad()
    output = model(batch)  # error: padding-changes-output
    nn.functional.mse_loss(output.squeeze(1), means[chosen]).backward()
    optimizer.step()

model.eval()
with torch.no_grad():
    error = torch.stack([(model(rows[i][None])[0, 0] - means[i]).abs() for i in range(1000, 1200)])
print(f"result: {error.mean():.4f}")
