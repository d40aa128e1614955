# says: holds the label 11
# says: at least 12 outputs
import torch
import torch.nn.functional as F
from torch import nn


class Trainer:
    def __init__(self):
        self.net = nn.Linear(4, 10)

    def step(self, batch):
        images, target = batch  # related
        return F.cross_entropy(self.net(images), target)  # died: label-outside-of-classes


Trainer().step((torch.randn(2, 4), torch.tensor([0, 11])))
