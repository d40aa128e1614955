"""A CNN with every weight filled with ones over the fan-in: 16 filters that are one filter, trained with momentum."""
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 16, 3, padding=1)
        self.head = nn.Linear(16, 2)
        for layer in (self.conv1, self.conv2, self.head):
            nn.init.constant_(layer.weight, 1 / layer.weight[0].numel())
            nn.init.zeros_(layer.bias)

    def forward(self, x):
        x = torch.relu(self.conv1(x))
        x = torch.relu(self.conv2(x))
        return self.head(x.mean((2, 3)))


images = torch.rand(160, 1, 8, 8)
labels = (images[:, 0, :4].mean((1, 2)) > images[:, 0, 4:].mean((1, 2))).long()
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
for epoch in range(6):
    for rows in torch.randperm(160).split(16):
        optimizer.zero_grad()
        output = net(images[rows])  # error: symmetric-initialisation
        loss = nn.functional.cross_entropy(output, labels[rows])
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
