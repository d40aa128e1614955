"""A siamese network on digits: pairs of the same digit have a label of 1, the others 0."""
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
digits = load_digits()


class Pairs(Dataset):
    def __init__(self):
        self.x = torch.tensor(digits.data / 16, dtype=torch.float32)
        self.y = torch.tensor(digits.target)
        self.other = torch.randperm(len(self.x))

    def __len__(self):
        return 1200

    def __getitem__(self, i):
        j = self.other[i] if i % 2 else (self.y == self.y[i]).nonzero()[i % 50, 0]
        return self.x[i], self.x[j], float(self.y[i] == self.y[j])


encoder = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 16))
criterion = nn.CosineEmbeddingLoss(margin=0.2)
optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-3)
for epoch in range(3):
    for one, other, alike in DataLoader(Pairs(), batch_size=40, shuffle=True):
        loss = criterion(encoder(one), encoder(other), alike)
        optimizer.zero_grad()
        loss.backward()  # error: labels-not-signs
        optimizer.step()
    print(epoch, loss.item())
