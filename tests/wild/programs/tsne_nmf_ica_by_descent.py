"""Classical methods by gradient descent on leaves: t-SNE with early exaggeration, NMF with projections, ICA on the Stiefel manifold."""
import torch

torch.manual_seed(0)

# --- t-SNE
X = torch.cat([torch.randn(20, 8) + 4 * torch.randn(8) for _ in range(3)])
d = torch.cdist(X, X) ** 2
P = torch.softmax(-d / (2 * d.median() / 8) - 1e9 * torch.eye(60), 1)
P = ((P + P.T) / 120).clamp_min(1e-12)
Y = (1e-2 * torch.randn(60, 2)).requires_grad_()
velocity = torch.zeros_like(Y)
for it in range(150):
    num = 1 / (1 + torch.cdist(Y, Y).square()) * (1 - torch.eye(60))
    Q = (num / num.sum()).clamp_min(1e-12)
    kl = ((P * (4 if it < 50 else 1)) * (P.log() - Q.log())).sum()
    (g,) = torch.autograd.grad(kl, Y)
    velocity = (0.5 if it < 50 else 0.8) * velocity - 20 * g
    with torch.no_grad():
        Y += velocity
        Y -= Y.mean(0)
    if it % 50 == 0:
        print("t-SNE", it, round(kl.item(), 3))
print("t-SNE end", round(kl.item(), 3))

# --- NMF
V = torch.rand(30, 3) @ torch.rand(3, 20)
W, H = torch.rand(30, 3, requires_grad=True), torch.rand(3, 20, requires_grad=True)
sgd = torch.optim.SGD([W, H], lr=0.02, momentum=0.9)
for it in range(200):
    sgd.zero_grad()
    loss = (V - W @ H).square().sum() / 2
    loss.backward()
    sgd.step()
    with torch.no_grad():
        for f in (W, H):
            f.clamp_(min=0)
    if it % 100 == 0:
        print("NMF", it, round(loss.item(), 4))
print("NMF end", round(loss.item(), 5))

# --- ICA
t = torch.linspace(0, 20, 500)
S = torch.stack([torch.sign(torch.sin(3 * t)), torch.sin(5 * t), torch.rand(500) * 2 - 1])
M = torch.randn(3, 3) @ S
M = M - M.mean(1, keepdim=True)
U, s, _ = torch.linalg.svd(M @ M.T / 500)
Z = (U / s.sqrt()).T @ M
B = torch.linalg.qr(torch.randn(3, 3))[0].requires_grad_()
opt = torch.optim.Adagrad([B], lr=0.1, maximize=True)
for it in range(120):
    opt.zero_grad(set_to_none=False)
    kurtosis = ((B @ Z) ** 4).mean(1) - 3
    goal = kurtosis.abs().sum()
    goal.backward()
    opt.step()
    with torch.no_grad():
        u, _, v = torch.linalg.svd(B)
        B.copy_(u @ v)
    if it % 60 == 0:
        print("ICA", it, round(goal.item(), 4))
with torch.no_grad():
    corr = torch.corrcoef(torch.cat([B @ Z, S]))[:3, 3:].abs().amax(1)
print("ICA end", [round(c, 2) for c in corr.tolist()])
