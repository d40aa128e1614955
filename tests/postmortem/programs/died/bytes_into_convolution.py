# says: is uint8
# says: `images = images.float() / 255`
import torch
from torch import nn

conv = nn.Conv2d(1, 4, 3)
images = torch.randint(0, 256, (2, 1, 8, 8), dtype=torch.uint8)  # related
conv(images)  # died: different-types
