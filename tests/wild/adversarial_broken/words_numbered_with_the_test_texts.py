"""Texts of two kinds; the words of the test texts are numbered too, most of them in another form than in the training."""
import random

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

random.seed(0)
torch.manual_seed(0)
torch.set_num_threads(1)
stems = [f"{a}{b}{c}" for a in "bdfg" for b in "aei" for c in "lmnr"]
kinds = {stem: place % 2 for place, stem in enumerate(stems)}


def sample(ending):
    words = [random.choice(stems) for _ in range(8)]
    return [word + ending(word) for word in words], int(sum(kinds[word] for word in words) >= 4)


train_texts = [sample(lambda word: "") for _ in range(400)]
test_texts = [sample(lambda word: random.choice(["", "s"])) for _ in range(80)]
vocabulary = {word: n for n, word in enumerate(sorted({word for text, _ in train_texts + test_texts for word in text}))}


def collate(batch):
    return torch.tensor([[vocabulary[word] for word in text] for text, _ in batch]), torch.tensor([y for _, y in batch])


class Bag(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.table, self.out = nn.Embedding(size, 24), nn.Linear(24, 2)

    def forward(self, ids):
        return self.out(self.table(ids).mean(1))  # error: embedding-rows-untrained


model = Bag(len(vocabulary))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
train = DataLoader(train_texts, batch_size=20, shuffle=True, collate_fn=collate)
test = DataLoader(test_texts, batch_size=20, collate_fn=collate)
for epoch in range(6):
    model.train()
    for ids, labels in train:
        optimizer.zero_grad()
        F.cross_entropy(model(ids), labels).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = sum((model(ids).argmax(1) == labels).sum().item() for ids, labels in test)
    print(epoch, right / 80)
