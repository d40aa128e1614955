"""Pictures from memory with the channels last, one at a time; the data set views each with its channels in front."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(3)


class Pictures(Dataset):
    def __init__(self, count):
        kinds = torch.randint(0, 3, (count,))
        smooth = nn.functional.avg_pool2d(torch.rand(count, 3, 30, 34), 7, 1)
        smooth[torch.arange(count), kinds] *= 1.2
        self.raw = (255 * smooth / smooth.amax()).byte().permute(0, 2, 3, 1).contiguous()
        self.kinds = kinds

    def __len__(self):
        return len(self.raw)

    def __getitem__(self, index):
        picture = self.raw[index].float() / 255
        return (picture.view(3, 24, 28) - 0.5) / 0.2, self.kinds[index]  # error: view-instead-of-permute


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 12, 3), nn.BatchNorm2d(12), nn.ReLU(), nn.MaxPool2d(2))
        self.head = nn.Linear(12, 3)

    def forward(self, x):
        return self.head(self.features(x).mean((2, 3)))


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for _ in range(4):
    for pictures, kinds in DataLoader(Pictures(160), batch_size=20, shuffle=True):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(pictures), kinds).backward()
        optimizer.step()
