"""A compiled model with nn.Softmax as last layer."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 3), nn.Softmax(dim=-1))
model = torch.compile(net, backend="eager")
opt = torch.optim.AdamW(net.parameters(), lr=1e-2)
loss_fn = nn.CrossEntropyLoss()
dl = DataLoader(TensorDataset(torch.randn(96, 6), torch.randint(0, 3, (96,))), batch_size=16, shuffle=True)
for epoch in range(3):
    for x, y in dl:
        out = model(x)
        loss = loss_fn(out, y)  # error: softmax-before-cross-entropy
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
