# says: `model.0` takes 784 numbers per sample and was given them unflattened
# says: (64, 784) when flattened
# says: `nn.Flatten()` before it
import torch
from torch import nn

model = nn.Sequential(
    nn.Linear(28 * 28, 128),
    nn.ReLU(),
    nn.Linear(128, 10),
)
for images in (torch.rand(64, 1, 28, 28),):  # related
    logits = model(images)  # died: shapes-do-not-fit
