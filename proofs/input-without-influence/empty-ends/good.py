"""Tell whether a sequence holds more ones or twos; the sequences have different lengths and are packed."""

import sys

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

torch.set_num_threads(1)
torch.manual_seed(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
sequences = [torch.randint(1, 3, (2 * int(torch.randint(2, 8, ())) + 1,)) for _ in range(1200)]
labels = torch.tensor([float((one == 2).sum() > (one == 1).sum()) for one in sequences])


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.lstm, self.head = nn.Embedding(3, 8), nn.LSTM(8, 16, batch_first=True), nn.Linear(16, 1)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(self.embedding(x), lengths, batch_first=True, enforce_sorted=False)
        out, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        return self.head(out[torch.arange(len(x)), lengths - 1]).squeeze(1)


def scores(chosen):
    batch = [sequences[i] for i in chosen.tolist()]
    return model(pad_sequence(batch, batch_first=True), torch.tensor([len(one) for one in batch]))


model = Counter()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _epoch in range(4):
    for chosen in torch.randperm(900).split(30):
        optimizer.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(scores(chosen), labels[chosen]).backward()
        optimizer.step()

with torch.no_grad():
    print(f"result: {((scores(torch.arange(900, 1200)) > 0) == labels[900:]).float().mean().item():.4f}")
