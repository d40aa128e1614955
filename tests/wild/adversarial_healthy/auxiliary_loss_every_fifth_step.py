"""An auxiliary branch is only trained on every fifth step, its output is computed on all."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.aux_encoder = nn.Linear(8, 8)
        self.encoder = nn.Linear(8, 16)
        self.aux_head = nn.Linear(8, 8)
        self.head = nn.Linear(16, 2)

    def forward(self, x):
        z = torch.tanh(self.aux_encoder(x))
        return self.head(torch.relu(self.encoder(x + z.detach()))), self.aux_head(z)


net = Net()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
loader = DataLoader(TensorDataset(torch.randn(240, 8), torch.randint(0, 2, (240,))), batch_size=16, shuffle=True)
step = 0
for epoch in range(3):
    for x, y in loader:
        logits, reconstruction = net(x)
        loss = nn.functional.cross_entropy(logits, y)
        if step % 5 == 1:
            loss = loss + nn.functional.mse_loss(reconstruction, x)
        opt.zero_grad()
        loss.backward()
        opt.step()
        step += 1
