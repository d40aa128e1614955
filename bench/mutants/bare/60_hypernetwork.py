import torch

torch.manual_seed(0)
# a family of functions y = a sin(b x); the hypernetwork maps (a, b) to the weights of a small net
SHAPES = [(1, 16), (16,), (16, 1), (1,)]
N_OUT = sum(torch.Size(s).numel() for s in SHAPES)

H = [torch.randn(2, 64) * 0.7, torch.zeros(64), torch.randn(64, 64) * 0.125, torch.zeros(64),
     torch.randn(64, N_OUT) * 0.03, torch.randn(N_OUT) * 0.5]
for t in H:
    t.requires_grad_(True)


def generate(task):
    h = torch.relu(task @ H[0] + H[1])
    h = torch.relu(h @ H[2] + H[3])
    flat = h @ H[4] + H[5]
    out, k = [], 0
    for s in SHAPES:
        n = torch.Size(s).numel()
        out.append(flat[:, k:k + n].reshape(len(task), *s))
        k += n
    return out


def main_net(task, x):
    w1, b1, w2, b2 = generate(task)
    h = torch.tanh(torch.bmm(x, w1) + b1.unsqueeze(1))
    return torch.bmm(h, w2) + b2.unsqueeze(1)


def sample(n, k=20):
    task = torch.stack([torch.rand(n) * 1.5 + 0.5, torch.rand(n) * 1.0 + 0.8], 1)
    x = torch.rand(n, k, 1) * 4 - 2
    return task, x, task[:, :1, None] * torch.sin(task[:, 1:, None] * x)


unseen = sample(100)
opt = torch.optim.Adam(H, lr=2e-3)
for step in range(501):
    task, x, y = sample(32)
    loss = (main_net(task, x) - y).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 100 == 0:
        with torch.no_grad():
            test = (main_net(unseen[0], unseen[1]) - unseen[2]).square().mean().item()
        print(f'step {step} loss {loss.item():.4f} unseen tasks {test:.4f}')
