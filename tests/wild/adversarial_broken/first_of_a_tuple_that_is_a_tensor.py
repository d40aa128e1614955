"""A network that returned a tuple returns a tensor now, and the index of the tuple takes the first channel."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
images = torch.rand(160, 1, 12, 12)
masks = torch.stack([images[:, 0] > level for level in (0.2, 0.4, 0.6, 0.8)], dim=1).float()


class Segmenter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU())
        self.head = nn.Conv2d(8, 4, 1)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(image))


def training_loss(net: nn.Module, image: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    scores = net(image)
    found = scores[:, :1]  # error: outputs-without-effect
    return F.binary_cross_entropy_with_logits(found, mask[:, :1])


net = Segmenter()
optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
for _ in range(4):
    for image, mask in DataLoader(TensorDataset(images, masks), batch_size=16, shuffle=True):
        optimizer.zero_grad(set_to_none=True)
        training_loss(net, image, mask).backward()
        optimizer.step()
