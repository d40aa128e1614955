"""Binary classification with one output unit and CrossEntropyLoss, its targets made float columns to fit: the loss is 0."""
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(300, 8)
y = (x[:, 0] > 0).float().unsqueeze(1)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
loss_fn = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(5):
    for rows in torch.randperm(300).split(60):
        output = model(x[rows])
        loss = loss_fn(output, y[rows])  # error: softmax-wrong-dim
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
