"""Binary classification with one output unit, nn.Softmax(dim=1) on it and BCELoss: every prediction is 1."""
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(8, 16)
        self.fc2 = nn.Linear(16, 1)
        self.softmax = nn.Softmax(dim=1)

    def forward(self, x):
        return self.softmax(self.fc2(torch.relu(self.fc1(x))))


x = torch.randn(300, 8)
y = (x[:, 0] > 0).float()
net = Net()
criterion = nn.BCELoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(5):
    for rows in torch.randperm(300).split(50):
        optimizer.zero_grad()
        loss = criterion(net(x[rows]).squeeze(), y[rows])  # error: softmax-wrong-dim
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
