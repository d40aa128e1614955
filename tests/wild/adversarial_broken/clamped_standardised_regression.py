"""House prices, standardised before training; the network still ends in the ReLU that kept raw prices positive."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(200, 5)
price = (x @ torch.randn(5)).exp()
price = (price.log() - price.log().mean()) / price.log().std()
loader = DataLoader(TensorDataset(x, price), batch_size=20, shuffle=True)
net = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1), nn.ReLU())
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for epoch in range(4):
    for features, target in loader:
        optimizer.zero_grad()
        loss = nn.functional.smooth_l1_loss(net(features).squeeze(1), target)  # error: activation-clamps-output
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
