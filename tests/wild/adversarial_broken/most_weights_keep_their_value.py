"""Plain tensors in bfloat16: a rate of Adam that moves the small weights only."""

import torch
import torch.nn.functional as F

g = torch.Generator().manual_seed(0)
x = torch.randn(512, 24, generator=g)
y = torch.sin(x @ torch.randn(24, 1, generator=g))


def weight(inputs, outputs):
    return (torch.randn(inputs, outputs, generator=g) / inputs**0.5).bfloat16().requires_grad_()


first, bias, second = weight(24, 64), torch.zeros(64, dtype=torch.bfloat16, requires_grad=True), weight(64, 1)
adam = torch.optim.Adam([first, bias, second], lr=1e-4)
for _ in range(220):
    rows = torch.randint(0, 512, (64,), generator=g)
    out = F.silu(x[rows].bfloat16() @ first + bias) @ second
    loss = F.mse_loss(out.float(), y[rows])
    adam.zero_grad()
    loss.backward()
    adam.step()  # error: update-rounds-to-zero
