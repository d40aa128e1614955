"""A helper averages plain tensors in place; the list of averages has `.data` of each tensor, with the same memory."""
import torch


def update(shadow, tensors, decay=0.9):
    for kept, new in zip(shadow, tensors):
        kept.copy_(decay * kept + (1 - decay) * new.data)


def predict(weights, rows):
    return torch.tanh(rows @ weights[0]) @ weights[1]


torch.manual_seed(0)
x = torch.randn(400, 8)
y = torch.sin(x @ torch.randn(8)) + 0.2 * torch.randn(400)
weights = [(torch.randn(8, 16) * 0.3).requires_grad_(), (torch.randn(16) * 0.3).requires_grad_()]
shadow = [w.data for w in weights]  # error: reference-is-the-model
optimizer = torch.optim.SGD(weights, lr=0.05)
for step in range(300):
    rows = torch.randint(0, 300, (16,))
    loss = ((predict(weights, x[rows]) - y[rows]) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    update(shadow, weights)
with torch.no_grad():
    print(((predict(shadow, x[300:]) - y[300:]) ** 2).mean().item())
