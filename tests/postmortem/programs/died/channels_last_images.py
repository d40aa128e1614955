# says: the channels are last
# says: `x.permute(0, 3, 1, 2)`
import numpy as np
import torch
from torch import nn

model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU())
images = np.zeros((4, 32, 32, 3), dtype=np.float32)
x = torch.from_numpy(images)  # related
out = model(x)  # died: shapes-do-not-fit
