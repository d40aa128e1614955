"""Semi-supervised node classification: one forward over all nodes, losses and metrics by masks."""
import torch
import torch.nn.functional as F

torch.manual_seed(0)
n, classes, d = 400, 4, 32
label = torch.arange(n) % classes
same = label[:, None] == label
edge = torch.rand(n, n) < torch.where(same, 0.05, 0.008)
A = torch.triu(edge, 1)
A = (A | A.T).float() + torch.eye(n)
deg = A.sum(1)
A_hat = A / (deg[:, None] * deg).sqrt()
centres = torch.randn(classes, d)
features = centres[label] * 0.5 + torch.randn(n, d)

perm = torch.randperm(n)
train_mask, val_mask, test_mask = (torch.zeros(n, dtype=torch.bool) for _ in range(3))
train_mask[perm[:40]] = True
val_mask[perm[40:140]] = True
test_mask[perm[140:]] = True

W0 = (torch.randn(d, 16) * d ** -0.5).requires_grad_()
W1 = (torch.randn(16, classes) * 0.25).requires_grad_()


def gcn(x, train):
    x = F.dropout(x, 0.3, training=train)
    h = torch.relu(A_hat @ (x @ W0))
    h = F.dropout(h, 0.3, training=train)
    return A_hat @ (h @ W1)


opt = torch.optim.Adam([{'params': [W0], 'weight_decay': 5e-4}, {'params': [W1]}], lr=0.02)
best_val, test_at_best = 0.0, 0.0
for epoch in range(1, 101):
    out = gcn(features, train=True)
    loss = F.cross_entropy(out[train_mask], label[train_mask])
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        pred = gcn(features, train=False).argmax(1)
    hit = (pred == label).float()
    val = hit[val_mask].mean().item()
    if val > best_val:
        best_val, test_at_best = val, hit[test_mask].mean().item()
    if epoch % 25 == 0:
        print(f'epoch {epoch} loss {loss.item():.3f} train {hit[train_mask].mean().item():.3f} val {val:.3f}')
print(f'best val {best_val:.3f} test there {test_at_best:.3f}')
