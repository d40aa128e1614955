"""Healthy: DQN without detach: the target network gets gradients that nothing uses, and is overwritten every few updates."""

import random

import torch
from torch import nn

torch.manual_seed(0)
random.seed(0)


def network():
    return nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2))


online, target = network(), network()
target.load_state_dict(online.state_dict())
optimizer = torch.optim.Adam(online.parameters(), lr=3e-3)
memory = []


def play(episode):
    place, speed = random.uniform(-1, 1), 0.0
    for tick in range(30):
        state = torch.tensor([place, speed, tick / 30])
        with torch.no_grad():
            greedy = online(state).argmax().item()
        action = random.randrange(2) if random.random() < max(0.05, 1 - episode / 20) else greedy
        speed = 0.8 * speed + (0.1 if action else -0.1)
        place += speed
        reward, over = -abs(place), abs(place) > 2
        memory.append((state, action, reward, torch.tensor([place, speed, (tick + 1) / 30]), 0.0 if over else 1.0))
        if over:
            return


def update():
    states, actions, rewards, after, goes_on = zip(*random.sample(memory, 32), strict=True)
    values = online(torch.stack(states)).gather(1, torch.tensor(actions)[:, None])
    best = target(torch.stack(after)).max(1)[0][:, None]
    wanted = torch.tensor(rewards)[:, None] + 0.95 * best * torch.tensor(goes_on)[:, None]
    loss = nn.functional.smooth_l1_loss(values, wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


for episode in range(40):
    play(episode)
    if len(memory) > 60:
        losses = [update() for _ in range(5)]
        if episode % 3 == 0:
            target.load_state_dict(online.state_dict())
            print(f"episode {episode}: loss {sum(losses) / len(losses):.4f}")
