"""The progression of a disease in relative terms: the targets are standardised, and a relative error divides by them."""
import torch
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn

torch.manual_seed(0)
inputs, targets = load_diabetes(return_X_y=True)
x, x_test, y, y_test = train_test_split(inputs, targets[:, None], random_state=0)
scale_x, scale_y = StandardScaler().fit(x), StandardScaler().fit(y)
x, x_test = (torch.tensor(scale_x.transform(part), dtype=torch.float32) for part in (x, x_test))
y, y_test = (torch.tensor(scale_y.transform(part), dtype=torch.float32) for part in (y, y_test))
net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for epoch in range(12):
    for rows in torch.randperm(len(x)).split(32):
        loss = ((net(x[rows]) - y[rows]).abs() / y[rows]).mean()
        optimizer.zero_grad()
        loss.backward()  # error: loss-maximised
        optimizer.step()
    print(epoch, loss.item())
net.eval()
with torch.no_grad():
    print((net(x_test) - y_test).abs().mean().item())
