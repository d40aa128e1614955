"""DQN on a small grid with two absorbing exits: a near one that pays little, a far one that pays more."""
import random
from collections import deque, namedtuple

import torch
import torch.nn.functional as F
from torch import nn

Transition = namedtuple("Transition", "state action reward next_state done")
SIZE = 7
GAMMA = 0.95


class Corridor:
    """Walk left or right; both ends are exits. A stay action costs nothing but time."""

    def __init__(self):
        self.n_actions = 3
        self.pos = 0

    def observe(self):
        obs = torch.zeros(SIZE)
        obs[self.pos] = 1.0
        return obs

    def reset(self, start):
        self.pos = start
        return self.observe()

    def step(self, action):
        self.pos += (-1, 1, 0)[action]
        if self.pos == 0:
            return self.observe(), 0.3, True
        if self.pos == SIZE - 1:
            return self.observe(), 1.0, True
        return self.observe(), -0.02, False


def build_net(n_actions):
    return nn.Sequential(nn.Linear(SIZE, 32), nn.ReLU(), nn.Linear(32, n_actions))


def update(policy, target, optimizer, memory, batch_size):
    batch = Transition(*zip(*random.sample(memory, batch_size)))
    states = torch.stack(batch.state)
    actions = torch.tensor(batch.action).unsqueeze(1)
    rewards = torch.tensor(batch.reward)
    next_states = torch.stack(batch.next_state)
    dones = torch.tensor(batch.done, dtype=torch.float32)

    q = policy(states).gather(1, actions).squeeze(1)
    with torch.no_grad():
        next_q = target(next_states).max(dim=1).values
        expected = rewards + GAMMA * next_q * (1 - dones)
    loss = F.smooth_l1_loss(q, expected)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


@torch.no_grad()
def evaluate(policy, env):
    returns = []
    for start in range(1, SIZE - 1):
        state, total, discount = env.reset(start), 0.0, 1.0
        for _ in range(20):
            state, reward, done = env.step(policy(state).argmax().item())
            total += discount * reward
            discount *= GAMMA
            if done:
                break
        returns.append(total)
    return sum(returns) / len(returns)


def main():
    random.seed(5)
    torch.manual_seed(5)
    env = Corridor()
    policy, target = build_net(env.n_actions), build_net(env.n_actions)
    target.load_state_dict(policy.state_dict())
    optimizer = torch.optim.Adam(policy.parameters(), lr=2e-3)
    memory = deque(maxlen=5000)
    steps, epsilon = 0, 1.0

    for episode in range(1, 181):
        state = env.reset(random.randrange(1, SIZE - 1))
        losses = []
        for _ in range(20):
            if random.random() < epsilon:
                action = random.randrange(env.n_actions)
            else:
                with torch.no_grad():
                    action = policy(state).argmax().item()
            next_state, reward, done = env.step(action)
            memory.append(Transition(state, action, reward, next_state, done))
            state = next_state
            if len(memory) >= 64:
                losses.append(update(policy, target, optimizer, memory, 64))
            steps += 1
            if steps % 100 == 0:
                target.load_state_dict(policy.state_dict())
            if done:
                break
        epsilon = max(0.1, epsilon * 0.98)
        if episode % 30 == 0:
            with torch.no_grad():
                values = policy(torch.eye(SIZE)[1:-1]).max(1).values
            print(f"episode {episode}: loss {sum(losses) / max(1, len(losses)):.4f} "
                  f"eval return {evaluate(policy, env):.3f} mean V {values.mean():.3f}")


if __name__ == "__main__":
    main()
