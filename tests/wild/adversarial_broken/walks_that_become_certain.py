"""Walks on a line by a policy gradient, one loss for each step: p log p is subtracted instead of added."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)


def walk(steps=20):
    place, goal, kept, rewards = 0.0, float(torch.randint(0, 2, ())) * 8 - 4, [], []
    for step in range(steps):
        shares = torch.softmax(net(torch.tensor([place / 4, goal / 4, step / steps])), 0)
        action = torch.multinomial(shares, 1).item()
        place += 2 * action - 1
        kept.append((torch.log(shares[action]), (shares * torch.log(shares + 1e-8)).sum()))
        rewards.append(-abs(place - goal) / 4)
    return kept, rewards


for episode in range(60):
    kept, rewards = walk()
    total, returns = 0.0, []
    for reward in reversed(rewards):
        total = reward + 0.9 * total
        returns.insert(0, total)
    average = sum(returns) / len(returns)
    loss = 0
    for (chosen, certainty), gain in zip(kept, returns, strict=True):
        loss = loss - chosen * (gain - average) - 0.02 * certainty
    optimizer.zero_grad()
    loss.backward()  # error: loss-maximised
    optimizer.step()
    if episode % 20 == 19:
        print(episode, round(sum(rewards), 2), round(-certainty.item(), 3))
