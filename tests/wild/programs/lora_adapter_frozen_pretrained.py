"""LoRA: a network pretrained here, its weights frozen, low-rank adapters trained on another task, then merged and compared."""
import math

import torch
from torch import nn
from torch.nn import functional as F


class LoRALinear(nn.Module):
    def __init__(self, base, rank=4, alpha=8):
        super().__init__()
        self.base = base
        for p in self.base.parameters():
            p.requires_grad_(False)
        self.lora_A = nn.Parameter(torch.empty(rank, base.in_features))
        self.lora_B = nn.Parameter(torch.zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.lora_A, a=math.sqrt(5))
        self.scaling = alpha / rank
        self.dropout = nn.Dropout(0.05)

    def forward(self, x):
        return self.base(x) + self.scaling * F.linear(F.linear(self.dropout(x), self.lora_A), self.lora_B)

    @torch.no_grad()
    def merged(self):
        linear = nn.Linear(self.base.in_features, self.base.out_features)
        linear.weight.copy_(self.base.weight + self.scaling * self.lora_B @ self.lora_A)
        linear.bias.copy_(self.base.bias)
        return linear


def inject(module):
    for name, child in module.named_children():
        if isinstance(child, nn.Linear):
            setattr(module, name, LoRALinear(child))
        else:
            inject(child)


def task(rotation, n, g):
    x = torch.randn(n, 10, generator=g)
    return x, (x @ rotation).tanh().sum(1, keepdim=True) + x[:, :1] * x[:, 1:2]


def train(model, x, y, steps, lr):
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=lr, weight_decay=0.0)
    model.train()
    for _ in range(steps):
        index = torch.randint(0, len(x), (64,))
        loss = F.mse_loss(model(x[index]), y[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.inference_mode()
def score(model, x, y):
    model.eval()
    return F.mse_loss(model(x), y).item()


def main():
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(0)
    rotation = torch.randn(10, 4, generator=g) / 3
    model = nn.Sequential(nn.Linear(10, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 1))
    train(model, *task(rotation, 2000, g), steps=250, lr=3e-3)
    shifted = rotation + 0.2 * torch.randn(10, 4, generator=g)
    x, y = task(shifted, 400, g)
    x_test, y_test = task(shifted, 400, g)
    print(f"pretrained on the new task: {score(model, x_test, y_test):.4f}")

    inject(model)
    trainable = sum(p.numel() for p in model.parameters() if p.requires_grad)
    print(f"trainable {trainable} of {sum(p.numel() for p in model.parameters())}")
    train(model, x, y, steps=200, lr=3e-3)
    adapted = score(model, x_test, y_test)
    merged = nn.Sequential(*(m.merged() if isinstance(m, LoRALinear) else m for m in model))
    print(f"adapted {adapted:.4f}, merged {score(merged, x_test, y_test):.4f}")


if __name__ == "__main__":
    main()
