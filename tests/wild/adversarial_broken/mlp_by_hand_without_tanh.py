"""A network of plain tensors in a function; the hidden layer has no activation."""
import torch

generator = torch.Generator().manual_seed(0)
inputs = torch.rand(512, 2, generator=generator) * 2 - 1
targets = torch.sin(3 * inputs[:, :1]) * inputs[:, 1:]
w1 = (torch.randn(2, 24, generator=generator) * 0.5).requires_grad_()
w2 = (torch.randn(24, 1, generator=generator) * 0.2).requires_grad_()
b1, b2 = torch.zeros(24, requires_grad=True), torch.zeros(1, requires_grad=True)


def predict(x):
    hidden = x @ w1 + b1
    return hidden @ w2 + b2


optimizer = torch.optim.Adam([w1, b1, w2, b2], lr=1e-2)
for epoch in range(30):
    for begin in range(0, 512, 128):
        x, y = inputs[begin : begin + 128], targets[begin : begin + 128]
        optimizer.zero_grad()
        loss = (predict(x) - y).square().mean()
        loss.backward()  # error: layers-without-activation
        optimizer.step()
print(loss.item())
