"""Digits by an adversarial network with a penalty on the gradients of its critic, as images."""
import torch
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(0)
images = torch.tensor(load_digits().images / 8 - 1, dtype=torch.float32).unsqueeze(1)
maker = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.Tanh(), nn.Unflatten(1, (1, 8, 8)))
critic = nn.Sequential(
    nn.Conv2d(1, 16, 3), nn.LeakyReLU(0.2), nn.Conv2d(16, 16, 3), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(256, 1)
)
of_maker = torch.optim.Adam(maker.parameters(), 1e-3, betas=(0.5, 0.9))
of_critic = torch.optim.Adam(critic.parameters(), 1e-3, betas=(0.5, 0.9))


def gradient_penalty(real, fake):
    share = torch.rand(len(real), 1, 1, 1)
    mixed = (share * real + (1 - share) * fake).requires_grad_()
    gradients = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)[0]
    return ((gradients.norm(2, dim=1) - 1) ** 2).mean()


for step in range(90):
    real = images[torch.randint(0, len(images), (32,))]
    fake = maker(torch.randn(32, 8)).detach()
    loss = critic(fake).mean() - critic(real).mean() + 10 * gradient_penalty(real, fake)
    of_critic.zero_grad()
    loss.backward()  # error: softmax-wrong-dim
    of_critic.step()
    if step % 3 == 2:
        of_maker.zero_grad()
        (-critic(maker(torch.randn(32, 8))).mean()).backward()
        of_maker.step()
print(loss.item())
