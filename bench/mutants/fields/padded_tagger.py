"""Tag words of padded sentences with a bidirectional LSTM."""

import random

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader

PAD = 0
N_WORDS, N_TAGS = 30, 5


def make_sentences(n, rng):
    """The tag depends on the word and on the word before it."""
    data = []
    for _ in range(n):
        length = 24 if rng.random() < 0.1 else rng.randint(3, 7)
        words = [rng.randint(1, N_WORDS - 1) for _ in range(length)]
        tags = []
        for i, w in enumerate(words):
            before = words[i - 1] if i else 0
            tags.append(1 + (w % 2 + 2 * (before > 15)) % (N_TAGS - 1))
        data.append((torch.tensor(words), torch.tensor(tags)))
    return data


def collate(batch):
    words, tags = zip(*batch, strict=True)
    lengths = torch.tensor([len(w) for w in words])
    return pad_sequence(words, batch_first=True), pad_sequence(tags, batch_first=True, padding_value=PAD), lengths


class Tagger(nn.Module):
    """Embedding, LSTM and linear layer."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(N_WORDS, 12, padding_idx=PAD)
        self.lstm = nn.LSTM(12, 12, batch_first=True, bidirectional=True)
        self.out = nn.Linear(24, N_TAGS)

    def forward(self, words, lengths):
        packed = pack_padded_sequence(self.embed(words), lengths, batch_first=True, enforce_sorted=False)
        h, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        return self.out(h)


def evaluate(model, loader):
    model.eval()
    right = total = 0
    with torch.no_grad():
        for words, tags, lengths in loader:
            mask = tags != PAD
            right += (model(words, lengths).argmax(-1) == tags)[mask].sum().item()
            total += mask.sum().item()
    return right / total


rng = random.Random(5)
torch.manual_seed(5)
train_loader = DataLoader(make_sentences(500, rng), batch_size=32, shuffle=True, collate_fn=collate)
val_loader = DataLoader(make_sentences(200, rng), batch_size=50, collate_fn=collate)
model = Tagger()
criterion = nn.CrossEntropyLoss(ignore_index=PAD)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(1, 7):
    model.train()
    losses = []
    for words, tags, lengths in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(words, lengths).transpose(1, 2), tags)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(f"epoch {epoch} loss {sum(losses) / len(losses):.4f} val accuracy {evaluate(model, val_loader):.4f}")
