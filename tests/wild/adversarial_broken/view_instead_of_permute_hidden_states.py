"""The two directions of an LSTM joined by a view of its hidden state: pieces of different samples side by side."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(300, 7, 4)
y = (x[:, :, 0].sum(1) > 0).long()
train = DataLoader(TensorDataset(x[:240], y[:240]), 20, shuffle=True)
valid = DataLoader(TensorDataset(x[240:], y[240:]), 20)


class BiLSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 10, bidirectional=True, batch_first=True)
        self.out = nn.Linear(20, 2)

    def forward(self, x):
        _, (hidden, _) = self.lstm(x)
        joined = hidden.view(x.size(0), -1)  # error: view-instead-of-permute
        return self.out(joined)


model = BiLSTM()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = nn.CrossEntropyLoss()
for epoch in range(2):
    model.train()
    for inputs, labels in train:
        optimizer.zero_grad()
        criterion(model(inputs), labels).backward()
        optimizer.step()
    model.eval()
    total = 0.0
    with torch.inference_mode():
        for inputs, labels in valid:
            total += criterion(model(inputs), labels).item()
    print(epoch, total / len(valid))
