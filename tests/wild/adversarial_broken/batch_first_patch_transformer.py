"""A small vision transformer with an encoder built without batch_first: patches attend to those of other pictures."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)


class Shapes(Dataset):
    def __init__(self, n):
        self.labels = torch.randint(0, 2, (n,))
        self.images = 0.1 * torch.randn(n, 1, 12, 12)
        self.images[self.labels == 1, :, 3:9, 5] += 1

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.images[i], self.labels[i]


class ViT(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.patches = nn.Conv2d(1, dim, 4, stride=4)
        self.cls = nn.Parameter(torch.zeros(1, 1, dim))
        self.position = nn.Parameter(0.1 * torch.randn(1, 10, dim))
        layer = nn.TransformerEncoderLayer(dim, nhead=2, dim_feedforward=32)
        self.encoder = nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)
        self.head = nn.Linear(dim, 2)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(x.size(0), -1, -1), x], dim=1) + self.position
        x = self.encoder(x)  # error: batch-first-missing
        return self.head(x[:, 0])


train, test = DataLoader(Shapes(128), 16, shuffle=True), DataLoader(Shapes(48), 16)
net = ViT()
opt = torch.optim.AdamW(net.parameters(), 1e-3)
for _epoch in range(2):
    net.train()
    for images, labels in train:
        loss = nn.CrossEntropyLoss()(net(images), labels)
        opt.zero_grad()
        loss.backward()
        opt.step()

    @torch.no_grad()
    def accuracy():
        net.eval()
        return sum((net(i).argmax(1) == t).float().sum().item() for i, t in test) / 48

    print(accuracy())
