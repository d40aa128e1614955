# says: there are 12 predictions for 3 targets
import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 6, batch_first=True)
        self.out = nn.Linear(6, 5)

    def forward(self, x):
        y, _ = self.lstm(x)
        return self.out(y).reshape(-1, 5)


model, criterion = Tagger(), nn.CrossEntropyLoss()
x, y = torch.randn(3, 4, 4), torch.randint(0, 5, (3,))  # related
scores = model(x)  # related
loss = criterion(scores, y)  # died: shapes-do-not-fit
