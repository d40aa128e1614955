"""Healthy: gradients cleared by hand with `p.grad = None`, the way a performance guide shows it."""
import torch
import torch.nn as nn

torch.manual_seed(0)
torch.set_num_threads(1)

N, D = 1024, 16
X = torch.randn(N, D)
w_true = torch.randn(D, 3)
Y = torch.argmax(X @ w_true + 0.3 * torch.randn(N, 3), dim=1)
X_train, Y_train, X_val, Y_val = X[:768], Y[:768], X[768:], Y[768:]

net = nn.Sequential(nn.Linear(D, 48), nn.GELU(), nn.LayerNorm(48), nn.Linear(48, 3))
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
loss_fn = nn.CrossEntropyLoss()

for epoch in range(6):
    net.train()
    perm = torch.randperm(len(X_train))
    for idx in perm.split(64):
        for p in net.parameters():
            p.grad = None
        loss = loss_fn(net(X_train[idx]), Y_train[idx])
        loss.backward()
        opt.step()

    net.eval()
    with torch.inference_mode():
        out = net(X_val)
        val_loss = loss_fn(out, Y_val).item()
        acc = (out.argmax(1) == Y_val).float().mean().item()
    print(f"[{epoch}] val_loss={val_loss:.4f} acc={acc:.4f}")
