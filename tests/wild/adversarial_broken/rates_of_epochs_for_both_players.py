"""Two players with their own optimizers, each with an exponential decay of its learning rate over the epochs."""

import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits as bce
from torch.optim.lr_scheduler import LambdaLR

torch.manual_seed(0)
torch.set_num_threads(1)
real = torch.randn(512, 2) * 0.4 + torch.tensor([1.0, -1.0])
generator = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
critic = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))


def optimizer_of(model, lr):
    """Return an optimizer and the decay of its rate."""
    optimizer = torch.optim.Adam(model.parameters(), lr=lr, betas=(0.5, 0.999))
    decay = LambdaLR(optimizer, lambda epoch: lr * 0.9**epoch)  # error: lambda-returns-rate
    return optimizer, decay


g_optimizer, g_decay = optimizer_of(generator, 1e-3)
c_optimizer, c_decay = optimizer_of(critic, 4e-4)
for _ in range(8):
    for rows in torch.randperm(len(real)).split(64):
        noise = torch.randn(len(rows), 4)
        fake = generator(noise)
        c_optimizer.zero_grad()
        right = bce(critic(real[rows]), torch.ones(len(rows), 1))
        (right + bce(critic(fake.detach()), torch.zeros(len(rows), 1))).backward()
        c_optimizer.step()
        g_optimizer.zero_grad()
        bce(critic(fake), torch.ones(len(rows), 1)).backward()
        g_optimizer.step()
    g_decay.step()
    c_decay.step()
