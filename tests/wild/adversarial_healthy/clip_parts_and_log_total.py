"""Encoder and decoder are clipped with separate limits, the total norm is only read."""
import torch
from torch import nn

torch.manual_seed(0)


class AE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(10, 16), nn.Tanh(), nn.Linear(16, 3))
        self.decoder = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 10))

    def forward(self, x):
        return self.decoder(self.encoder(x))


model = AE()
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
norms = []
for step in range(40):
    x = torch.randn(32, 10)
    opt.zero_grad()
    nn.functional.mse_loss(model(x), x).backward()
    norms.append(nn.utils.clip_grad_norm_(model.parameters(), float("inf")).item())
    nn.utils.clip_grad_norm_(model.encoder.parameters(), 0.5)
    nn.utils.clip_grad_norm_(model.decoder.parameters(), 1.0)
    opt.step()
    after = nn.utils.get_total_norm([p.grad for p in model.parameters()])
print(max(norms), after)
