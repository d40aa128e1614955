"""A notebook's line fit: the best weight and bias are detached, and not copied, so Adam goes on to move them."""
import torch

torch.manual_seed(0)
x = torch.randn(300, 6)
y = x @ torch.randn(6) + 0.5 + 0.3 * torch.randn(300)
w = torch.zeros(6, requires_grad=True)
b = torch.zeros(1, requires_grad=True)
optimizer = torch.optim.Adam([w, b], lr=0.05)
best_val, best_w, best_b = float("inf"), None, None
for epoch in range(60):
    for start in range(0, 40, 10):
        optimizer.zero_grad()
        loss = ((x[start : start + 10] @ w + b - y[start : start + 10]) ** 2).mean()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        val = ((x[40:170] @ w + b - y[40:170]) ** 2).mean().item()
    if val < best_val:
        best_val = val
        best_w = w.detach()  # error: best-weights-aliased
        best_b = b.data  # error: best-weights-aliased
with torch.no_grad():
    print(best_val, ((x[170:] @ best_w + best_b - y[170:]) ** 2).mean().item())
