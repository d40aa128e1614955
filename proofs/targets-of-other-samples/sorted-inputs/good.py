"""Tell if a sequence begins with a one or a two; a batch is sorted by length, for packing."""

import sys

import torch
from torch import nn
from torch.nn.utils import rnn
from torch.utils.data import DataLoader

torch.set_num_threads(1)
torch.manual_seed(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
rows = [torch.randint(1, 3, (int(torch.randint(2, 12, ())),)) for _ in range(1200)]
samples = [(row, float(row[0] == 2)) for row in rows]


def collate(batch):
    batch = sorted(batch, key=lambda sample: len(sample[0]), reverse=True)
    rows = [row for row, _ in batch]
    return rnn.pad_sequence(rows, True), torch.tensor(list(map(len, rows))), torch.tensor([y for _, y in batch])


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.gru, self.head = nn.Embedding(3, 8), nn.GRU(8, 16, batch_first=True), nn.Linear(16, 1)

    def forward(self, x, lengths):
        return self.head(self.gru(rnn.pack_padded_sequence(self.embedding(x), lengths, True))[1][-1]).squeeze(1)


model = Reader()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _epoch in range(4):
    for x, lengths, y in DataLoader(samples[:900], batch_size=30, shuffle=True, collate_fn=collate):
        optimizer.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(model(x, lengths), y).backward()
        optimizer.step()
with torch.no_grad():  # one sample at a time
    right = [(model(row[None], torch.tensor([len(row)])) > 0).item() == y for row, y in samples[900:]]
print(f"result: {sum(right) / len(right):.4f}")
