"""An actor and a critic with a common body, one step at a time for several walkers; the target of the critic has a gradient."""

import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)
body = nn.Sequential(nn.Linear(5, 32), nn.Tanh())
actor, critic = nn.Linear(32, 2), nn.Linear(32, 1)
parameters = [*body.parameters(), *actor.parameters(), *critic.parameters()]
optimizer = torch.optim.RMSprop(parameters, lr=1e-3)


def value_of(states):
    return critic(body(states)).squeeze(-1)


def update(states, actions, rewards, after, over):
    values = value_of(states)
    errors = rewards + 0.97 * value_of(after) * (~over) - values  # error: target-with-gradient
    chosen = Categorical(logits=actor(body(states)))
    loss = 0.5 * errors.pow(2).mean() - (chosen.log_prob(actions) * errors.detach()).mean() - 0.01 * chosen.entropy().mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(parameters, 0.5)
    optimizer.step()
    return loss.item()


places = torch.zeros(16, dtype=torch.long)
for step in range(120):
    states = nn.functional.one_hot(places, 5).float()
    with torch.no_grad():
        actions = Categorical(logits=actor(body(states))).sample()
    moved = (places + 2 * actions - 1).clamp(0, 4)
    over = moved == 4
    loss = update(states, actions, over.float(), nn.functional.one_hot(moved, 5).float(), over)
    places = torch.where(over, 0, moved)
print(f"loss {loss:.4f}")
