"""Logistic regression in plain tensors: the stable form of the loss, for logits, gets probabilities."""
import torch


def model(rows, w, b):
    return torch.sigmoid(rows @ w + b)


def stable_loss(logits, labels):
    return (logits.clamp(min=0) - logits * labels + torch.log1p(torch.exp(-logits.abs()))).mean()


torch.manual_seed(0)
rows = torch.randn(400, 8)
labels = (rows @ torch.randn(8) > 0).float()
w, b = torch.zeros(8, requires_grad=True), torch.zeros(1, requires_grad=True)
optimizer = torch.optim.SGD([w, b], lr=0.5)
for epoch in range(20):
    for batch in torch.randperm(300).split(30):
        loss = stable_loss(model(rows[batch], w, b), labels[batch])
        optimizer.zero_grad()
        loss.backward()  # error: sigmoid-before-bce-with-logits
        optimizer.step()
with torch.no_grad():
    print(loss.item(), ((model(rows[300:], w, b) > 0.5).float() == labels[300:]).float().mean().item())
