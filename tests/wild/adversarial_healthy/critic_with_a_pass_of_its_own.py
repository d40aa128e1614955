"""The sum of the losses is differentiated for the actor alone, by `inputs` and by `grad`; the critic has another pass."""

import torch
from torch import nn
from torch.distributions import Categorical
from torch.nn import functional as F

torch.manual_seed(0)
actor, critic = nn.Linear(4, 3), nn.Linear(4, 1)
optimizers = [torch.optim.Adam(net.parameters(), lr=1e-2) for net in (actor, critic)]


def losses():
    states = torch.randn(64, 4)
    policy = Categorical(logits=actor(states))
    actions = policy.sample()
    rewards = (actions == states[:, :3].argmax(1)).float()
    advantage = rewards - critic(states).squeeze(1)
    value = advantage.pow(2).mean()
    return value - (policy.log_prob(actions) * advantage).mean(), value


for step in range(80):
    total, value = losses()
    for optimizer in optimizers:
        optimizer.zero_grad()
    if step % 2:
        total.backward(inputs=list(actor.parameters()), retain_graph=True)
        value.backward(inputs=list(critic.parameters()))
    else:
        for net, loss in ((actor, total), (critic, value)):
            weights = list(net.parameters())
            for weight, slope in zip(weights, torch.autograd.grad(loss, weights, retain_graph=True)):
                weight.grad = slope
    for optimizer in optimizers:
        optimizer.step()
print(f"{F.relu(total).item():.3f}")
