import torch

torch.manual_seed(0)


class MLP:
    def __init__(self, *sizes):
        self.w = [torch.randn(a, b).mul(a ** -0.5).requires_grad_() for a, b in zip(sizes, sizes[1:])]
        self.b = [torch.zeros(b, requires_grad=True) for b in sizes[1:]]

    def __call__(self, x):
        for i in range(len(self.w)):
            x = x @ self.w[i] + self.b[i]
            if i + 1 < len(self.w):
                x = torch.relu(x)
        return x


def gamma_batch(n):
    return torch.distributions.Gamma(3.0, 1.5).sample((n, 1)) - 2.0


def gradient_penalty(critic, real, fake):
    mix = torch.rand(len(real), 1)
    x = (mix * real + (1 - mix) * fake).requires_grad_(True)
    grad, = torch.autograd.grad(critic(x).sum(), x, create_graph=True)
    return (grad.norm(dim=1) - 1).pow(2).mean()


generator, critic = MLP(2, 32, 32, 1), MLP(1, 32, 32, 1)
g_opt = torch.optim.Adam(generator.w + generator.b, lr=1e-3, betas=(0.0, 0.9))
c_opt = torch.optim.Adam(critic.w + critic.b, lr=3e-3, betas=(0.0, 0.9))
levels = torch.linspace(0.05, 0.95, 10)
reference = gamma_batch(20000).quantile(levels)

for it in range(401):
    for _ in range(5):
        real = gamma_batch(64)
        with torch.no_grad():
            fake = generator(torch.randn(64, 2))
        c_loss = critic(fake).mean() - critic(real).mean() + 1.0 * gradient_penalty(critic, real, fake)
        c_opt.zero_grad()
        c_loss.backward()
        c_opt.step()
    g_loss = -critic(generator(torch.randn(64, 2))).mean()
    g_opt.zero_grad()
    g_loss.backward()
    g_opt.step()
    if it % 100 == 0:
        with torch.no_grad():
            q = generator(torch.randn(2000, 2)).quantile(levels)
        print(f'iter {it} critic {c_loss.item():.3f} quantile error {(q - reference).abs().mean().item():.3f}')
