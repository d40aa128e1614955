"""Dueling double DQN in an agent class: tensors as a ring buffer, soft target updates with lerp_, an update every second step."""
import copy

import torch
import torch.nn as nn


class DuelingQ(nn.Module):
    def __init__(self, obs, actions, width=32):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(obs, width), nn.ReLU())
        self.value = nn.Linear(width, 1)
        self.advantage = nn.Linear(width, actions)

    def forward(self, x):
        h = self.trunk(x)
        a = self.advantage(h)
        return self.value(h) + a - a.mean(dim=1, keepdim=True)


class RingBuffer:
    def __init__(self, capacity, obs):
        self.capacity, self.size, self.at = capacity, 0, 0
        self.obs, self.next_obs = torch.empty(capacity, obs), torch.empty(capacity, obs)
        self.action = torch.empty(capacity, dtype=torch.long)
        self.reward = torch.empty(capacity)

    def add(self, obs, action, reward, next_obs):
        i = self.at
        self.obs[i], self.action[i], self.reward[i], self.next_obs[i] = obs, action, reward, next_obs
        self.at = (i + 1) % self.capacity
        self.size = min(self.size + 1, self.capacity)

    def sample(self, n):
        i = torch.randint(self.size, (n,))
        return self.obs[i], self.action[i], self.reward[i], self.next_obs[i]


class Agent:
    def __init__(self, obs, actions, tau=0.01, gamma=0.9):
        self.online = DuelingQ(obs, actions)
        self.target = copy.deepcopy(self.online).requires_grad_(False)
        self.optimizer = torch.optim.AdamW(self.online.parameters(), lr=2e-3, amsgrad=True)
        self.criterion = nn.SmoothL1Loss()
        self.tau, self.gamma, self.actions = tau, gamma, actions

    def act(self, obs, epsilon):
        if torch.rand(()) < epsilon:
            return int(torch.randint(self.actions, ()))
        with torch.no_grad():
            return int(self.online(obs[None]).argmax())

    def learn(self, batch):
        obs, action, reward, next_obs = batch
        with torch.no_grad():
            best = self.online(next_obs).argmax(1, keepdim=True)
            goal = reward + self.gamma * self.target(next_obs).gather(1, best).squeeze(1)
        chosen = self.online(obs).gather(1, action.unsqueeze(1)).squeeze(1)
        loss = self.criterion(chosen, goal)
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_value_(self.online.parameters(), 10)
        self.optimizer.step()
        with torch.no_grad():
            for t, p in zip(self.target.parameters(), self.online.parameters()):
                t.lerp_(p, self.tau)
        return loss.item()


def dynamics(obs, action):
    push = torch.tensor([-1.0, 0.0, 1.0])[action]
    nxt = 0.9 * obs + 0.1 * torch.randn(3)
    nxt[0] = nxt[0] + 0.5 * push
    return nxt, -(nxt[0] - nxt[1]).abs().item()


def main():
    torch.manual_seed(11)
    agent, buffer, obs = Agent(3, 3), RingBuffer(500, 3), torch.randn(3)
    rewards, loss = [], float("nan")
    for step in range(700):
        action = agent.act(obs, epsilon=max(0.05, 1 - step / 300))
        nxt, reward = dynamics(obs, action)
        buffer.add(obs, action, reward, nxt)
        rewards.append(reward)
        obs = nxt
        if buffer.size >= 100 and step % 2 == 0:
            loss = agent.learn(buffer.sample(32))
    print(f"reward {sum(rewards[:200]) / 200:.3f} -> {sum(rewards[-200:]) / 200:.3f}, loss {loss:.4f}")


main()
