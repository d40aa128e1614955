"""A collation of the program pads sequences; positions are encoded as for a model with the sequence first."""

import math

import torch
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(0)
rows = []
for _ in range(600):
    word = torch.randint(1, 20, (int(torch.randint(4, 12, ())),))
    rows.append((word, int(word[0] > word[-1])))


def collate(items):
    words = nn.utils.rnn.pad_sequence([word for word, _ in items], batch_first=True)
    return words, torch.tensor([len(word) for word, _ in items]), torch.tensor([label for _, label in items])


class Encoding(nn.Module):
    def __init__(self, width, longest=200):
        super().__init__()
        angle = torch.arange(longest)[:, None] * torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
        self.register_buffer("table", torch.stack((angle.sin(), angle.cos()), 2).flatten(1)[:, None])

    def forward(self, x):
        return x + self.table[: x.size(0)]  # error: batch-changes-output


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.encoding = nn.Embedding(20, 16, padding_idx=0), Encoding(16)
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.encoder, self.head = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False), nn.Linear(16, 2)

    def forward(self, words, lengths):
        padding = torch.arange(words.size(1)) >= lengths[:, None]
        x = self.encoder(self.encoding(self.embed(words)), src_key_padding_mask=padding)
        real = (~padding).float()[:, :, None]
        return self.head((x * real).sum(1) / real.sum(1))


loader = DataLoader(rows, 30, shuffle=True, collate_fn=collate)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), 2e-3)
for epoch in range(3):
    for words, lengths, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(words, lengths), labels)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
