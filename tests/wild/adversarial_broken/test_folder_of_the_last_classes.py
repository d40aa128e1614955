"""A list of files is sorted by class and cut: the data set reads the classes from the names of the files."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(18)
FILES = sorted(f"{kind}_{number:03}" for kind in range(6) for number in range(80))
CENTRES = 2 * torch.randn(6, 16)


class Recordings(Dataset):
    def __init__(self, files):
        self.files = files

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        kind = int(self.files[index].partition("_")[0])
        generator = torch.Generator().manual_seed(int(self.files[index][2:]) + 100 * kind)
        return CENTRES[kind] + torch.randn(16, generator=generator), kind


train = DataLoader(Recordings(FILES[:400]), batch_size=40, shuffle=True)
test = DataLoader(Recordings(FILES[400:]), batch_size=40)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 6))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
criterion = nn.CrossEntropyLoss()
for epoch in range(4):
    for inputs, kinds in train:
        optimizer.zero_grad()
        criterion(model(inputs), kinds).backward()
        optimizer.step()
    hits = 0
    with torch.no_grad():
        for inputs, kinds in test:
            hits += (model(inputs).argmax(1) == kinds).sum().item()  # error: evaluation-on-other-classes
    print(epoch, hits / len(test.dataset))
