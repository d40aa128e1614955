# says: `images` is float32, the weights of `net.0` are float16
# says: `net.half()` leaves the weights float16
# says: `torch.autocast`
import torch
from torch import nn

net = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 2))
net.half()  # related
images = torch.rand(2, 8)  # related
net(images)  # died: different-types
