"""Patches of images with a learned vector for each place: the table of places is read at zeros, once for the batch."""
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)


class Patches(nn.Module):
    def __init__(self):
        super().__init__()
        self.cut = nn.Conv2d(1, 24, 4, stride=4)
        self.place = nn.Embedding(16, 24)
        self.mix = nn.MultiheadAttention(24, 2, batch_first=True)
        self.out = nn.Linear(24, 4)

    def forward(self, images):
        x = self.cut(images).flatten(2).transpose(1, 2)
        x = x + self.place(torch.zeros(x.shape[1], dtype=torch.long))  # error: embedding-reads-wrong-rows
        return self.out(x + self.mix(x, x, x, need_weights=False)[0]).amax(1)


def batch(n):
    corner = torch.randint(0, 4, (n,))
    images = 0.3 * torch.randn(n, 1, 16, 16)
    for image, at in zip(images, corner.tolist(), strict=True):
        row, column = 12 * (at // 2), 12 * (at % 2)
        image[0, row : row + 4, column : column + 4] += 2
    return images, corner


net = Patches()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
criterion = nn.CrossEntropyLoss()
for step in range(50):
    images, corner = batch(32)
    opt.zero_grad()
    loss = criterion(net(images), corner)
    loss.backward()
    opt.step()
net.eval()
with torch.no_grad():
    images, corner = batch(200)
    print((net(images).argmax(1) == corner).float().mean().item())
