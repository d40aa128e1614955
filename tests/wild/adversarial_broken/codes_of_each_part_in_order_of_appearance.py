"""Names of digits get codes in the order in which a part of the data shows them, once for each part."""

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(1)
WORDS = np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])


class Digits(Dataset):
    def __init__(self, pictures, names):
        self.pictures = torch.tensor(pictures, dtype=torch.float32)
        codes = {name: code for code, name in enumerate(dict.fromkeys(names))}
        self.codes = [codes[name] for name in names]

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, place):
        return self.pictures[place], self.codes[place]


data, digits = load_digits(return_X_y=True)
order = np.random.default_rng(1).permutation(len(data))
data, names = data[order] / 16, WORDS[digits[order]]
train = DataLoader(Digits(data[:1200], names[:1200]), batch_size=64, shuffle=True)
test = DataLoader(Digits(data[1200:], names[1200:]), batch_size=128)

model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(5):
    model.train()
    for pictures, codes in train:
        optimizer.zero_grad()
        F.cross_entropy(model(pictures), codes).backward()
        optimizer.step()
    model.eval()
    right = count = 0
    with torch.no_grad():
        for pictures, codes in test:
            right += (model(pictures).argmax(1) == codes).sum().item()  # error: predictions-worse-than-chance
            count += len(codes)
    print(epoch, right / count)
