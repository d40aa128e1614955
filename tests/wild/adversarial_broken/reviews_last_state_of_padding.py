"""Reviews of different lengths: the last state of the recurrent layer is that after the padding."""
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

torch.manual_seed(0)
reviews = [(torch.randint(1, 20, (5 + n % 23,)), n % 2) for n in range(160)]
for words, label in reviews:
    words[1:3] = 3 if label else 4


def collate(samples):
    return pad_sequence([words for words, _ in samples], batch_first=True), torch.tensor([label for _, label in samples])


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(20, 12, padding_idx=0)
        self.reads = nn.LSTM(12, 16, batch_first=True)
        self.decides = nn.Linear(16, 2)

    def forward(self, words):
        states, _ = self.reads(self.words(words))
        return self.decides(states[:, -1])


def train(model, loader, optimizer):
    model.train()
    for words, labels in loader:
        scores = model(words)  # error: padding-changes-output
        loss = nn.functional.cross_entropy(scores, labels)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return loss.item()


reader = Reader()
adam = torch.optim.Adam(reader.parameters(), lr=3e-3)
for epoch in range(3):
    print(train(reader, DataLoader(reviews, batch_size=16, shuffle=True, collate_fn=collate), adam))
