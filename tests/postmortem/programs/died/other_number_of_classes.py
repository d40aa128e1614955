# says: `head` has 1,000 outputs in the checkpoint and 10 in the model
# says: `strict=False`
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.body = nn.Linear(4, 8)
        self.head = nn.Linear(8, classes)  # related

    def forward(self, x):
        return self.head(self.body(x))


model = Net(10)
model.load_state_dict(Net(1000).state_dict())  # died: weights-do-not-fit
