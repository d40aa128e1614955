"""The dropout of a fused attention does not follow the mode of the model: its evaluation draws."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
inputs = torch.randn(600, 8, 12)
labels = (inputs[:, :, 0].amax(1) > 1.4).long()


class Attention(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        batch, steps, width = x.shape
        q, k, v = self.qkv(x).view(batch, steps, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout)  # error: functional-dropout-always-on
        return self.out(y.transpose(1, 2).reshape(batch, steps, width))


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.head = Attention(12, 3, 0.3), nn.Linear(12, 2)

    def forward(self, x):
        return self.head((x + self.attention(x)).mean(1))


model = Network()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for epoch in range(4):
    model.train()
    for rows in torch.randperm(480).split(24):
        loss = F.cross_entropy(model(inputs[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        logits = torch.cat([model(part) for part in inputs[480:].split(40)])
    print(epoch, (logits.argmax(1) == labels[480:]).float().mean().item())
