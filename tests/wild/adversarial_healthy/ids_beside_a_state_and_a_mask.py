"""Words of an invented language: ids with a state that begins at zero in training only, then with weights of words."""

import torch
from torch import nn

torch.manual_seed(6)
WORDS = 12


def text(rows, length):
    words = [torch.randint(0, WORDS, (rows,))]
    for _ in range(length - 1):
        words.append(torch.where(torch.rand(rows) < 0.9, (words[-1] * 5 + 3) % WORDS, torch.randint(0, WORDS, (rows,))))
    return torch.stack(words, 1)


class Speaker(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.cell, self.out = nn.Embedding(WORDS, 16), nn.GRUCell(16, 32), nn.Linear(32, WORDS)

    def forward(self, word, state):
        state = self.cell(self.embed(word), state)
        return self.out(state), state


class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.out = nn.Embedding(WORDS, 16), nn.Linear(16, 2)

    def forward(self, words, share):
        return self.out((self.embed(words) * share.unsqueeze(2)).sum(1))


speaker, train, held = Speaker(), text(512, 9), text(64, 60)
opt = torch.optim.Adam(speaker.parameters(), lr=1e-2)
for epoch in range(8):
    speaker.train()
    for rows in torch.randperm(512).split(64):
        state, loss = torch.zeros(64, 32), 0.0
        for at in range(8):
            logits, state = speaker(train[rows, at], state)
            loss = loss + nn.functional.cross_entropy(logits, train[rows, at + 1]) / 8
        opt.zero_grad()
        loss.backward()
        opt.step()
    speaker.eval()
    with torch.no_grad():
        state, right = torch.zeros(64, 32), 0
        for at in range(59):
            logits, state = speaker(held[:, at], state)
            right += (logits.argmax(1) == held[:, at + 1]).sum().item()
    print("next word", right / (64 * 59))

bag, words = Bag(), text(600, 10)
label = (words == 3).any(1).long()
opt = torch.optim.Adam(bag.parameters(), lr=2e-2)
for epoch in range(20):
    for rows in torch.randperm(500).split(50):
        keep = (torch.rand(50, 10) > 0.3).float()
        share = keep / keep.sum(1, keepdim=True).clamp(min=1)
        loss = nn.functional.cross_entropy(bag(words[rows], share), label[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
bag.eval()
with torch.no_grad():
    right = (bag(words[500:], torch.full((100, 10), 0.1)).argmax(1) == label[500:]).float().mean().item()
print("has a 3", right)
