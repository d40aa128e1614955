"""A clipped policy gradient with ratios to an old policy, which is bound and never copied."""
import torch
import torch.nn as nn

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 3))
old_policy = policy  # error: reference-is-the-model
optimizer = torch.optim.Adam(policy.parameters(), lr=3e-3)


def log_probability(net, states, actions):
    return net(states).log_softmax(1).gather(1, actions[:, None]).squeeze(1)


for iteration in range(12):
    states = torch.randn(128, 4)
    actions = torch.randint(0, 3, (128,))
    advantages = (states[:, 0] * (actions == 0) - states[:, 1] * (actions == 2)).float()
    for _ in range(5):
        with torch.no_grad():
            before = log_probability(old_policy, states, actions)
        ratio = (log_probability(policy, states, actions) - before).exp()
        loss = -torch.min(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(f"{loss.item():.4f} {ratio.mean().item():.3f}")
