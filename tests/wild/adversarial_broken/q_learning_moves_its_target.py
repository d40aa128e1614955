"""A replay of named tuples, a mask of states that are not final, and the online network in place of the target network."""

import random
from collections import deque, namedtuple

import torch
from torch import nn

Transition = namedtuple("Transition", "state action after reward")
GAMMA, BATCH = 0.95, 32


class Dueling(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 32), nn.ReLU())
        self.value, self.advantage = nn.Linear(32, 1), nn.Linear(32, 3)

    def forward(self, x):
        x = self.body(x)
        advantage = self.advantage(x)
        return self.value(x) + advantage - advantage.mean(1, keepdim=True)


class Learner:
    def __init__(self):
        self.policy_net, self.target_net = Dueling(), Dueling()
        self.target_net.load_state_dict(self.policy_net.state_dict())
        self.optimizer = torch.optim.AdamW(self.policy_net.parameters(), lr=1e-3, amsgrad=True)
        self.memory = deque(maxlen=500)

    def optimize_model(self):
        batch = Transition(*zip(*random.sample(self.memory, BATCH)))
        not_final = torch.tensor([after is not None for after in batch.after])
        state_action_values = self.policy_net(torch.cat(batch.state)).gather(1, torch.tensor(batch.action)[:, None])
        next_state_values = torch.zeros(BATCH)
        after = torch.cat([one for one in batch.after if one is not None])
        next_state_values[not_final] = self.policy_net(after).max(1).values
        expected = next_state_values * GAMMA + torch.tensor(batch.reward)  # error: target-with-gradient
        loss = (state_action_values.squeeze(1) - expected).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(self.policy_net.parameters(), 100)
        self.optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(self.target_net.parameters(), self.policy_net.parameters()):
                slow.lerp_(fast, 0.05)


random.seed(0)
torch.manual_seed(0)
learner, state, total = Learner(), torch.randn(1, 4), 0.0
for step in range(250):
    with torch.no_grad():
        action = int(learner.policy_net(state).argmax(1)) if random.random() > 0.2 else random.randrange(3)
    reward = float(state[0, action] > 0)
    after = None if random.random() < 0.1 else 0.5 * state + torch.randn(1, 4)
    learner.memory.append(Transition(state, action, after, reward))
    state, total = torch.randn(1, 4) if after is None else after, total + reward
    if len(learner.memory) >= BATCH:
        learner.optimize_model()
print(f"mean reward {total / 250:.3f}")
