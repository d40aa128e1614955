"""Healthy: DQN in the tutorial's style: replay memory, target network with soft updates, action selection without gradients."""
import math
import random
from collections import deque, namedtuple

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

random.seed(0)
torch.manual_seed(0)
torch.set_num_threads(1)

Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))


class CartPole:
    """Classic cart-pole dynamics."""

    def reset(self):
        self.s = [random.uniform(-0.05, 0.05) for _ in range(4)]
        self.t = 0
        return list(self.s)

    def step(self, action):
        x, dx, th, dth = self.s
        force = 10.0 if action == 1 else -10.0
        temp = (force + 0.05 * dth ** 2 * math.sin(th)) / 1.1
        acc = (9.8 * math.sin(th) - math.cos(th) * temp) / (0.5 * (4 / 3 - 0.1 * math.cos(th) ** 2 / 1.1))
        xacc = temp - 0.05 * acc * math.cos(th) / 1.1
        self.s = [x + 0.02 * dx, dx + 0.02 * xacc, th + 0.02 * dth, dth + 0.02 * acc]
        self.t += 1
        terminated = abs(self.s[0]) > 2.4 or abs(self.s[2]) > 0.2095
        return list(self.s), 1.0, terminated, self.t >= 100


class ReplayMemory:
    def __init__(self, capacity):
        self.memory = deque([], maxlen=capacity)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, batch_size):
        return random.sample(self.memory, batch_size)

    def __len__(self):
        return len(self.memory)


class DQN(nn.Module):
    def __init__(self, n_observations, n_actions):
        super().__init__()
        self.layer1 = nn.Linear(n_observations, 48)
        self.layer2 = nn.Linear(48, 48)
        self.layer3 = nn.Linear(48, n_actions)

    def forward(self, x):
        return self.layer3(F.relu(self.layer2(F.relu(self.layer1(x)))))


BATCH_SIZE, GAMMA, TAU, LR = 48, 0.97, 0.05, 2e-3
policy_net, target_net = DQN(4, 2), DQN(4, 2)
target_net.load_state_dict(policy_net.state_dict())
optimizer = optim.Adam(policy_net.parameters(), lr=LR)
memory = ReplayMemory(2000)
env, steps_done = CartPole(), 0


def select_action(state):
    global steps_done
    eps_threshold = 0.05 + 0.85 * math.exp(-steps_done / 150)
    steps_done += 1
    if random.random() > eps_threshold:
        with torch.no_grad():
            return policy_net(state).max(1).indices.view(1, 1)
    return torch.tensor([[random.randrange(2)]], dtype=torch.long)


def optimize_model():
    if len(memory) < BATCH_SIZE:
        return
    batch = Transition(*zip(*memory.sample(BATCH_SIZE)))
    non_final_mask = torch.tensor([s is not None for s in batch.next_state], dtype=torch.bool)
    non_final_next_states = torch.cat([s for s in batch.next_state if s is not None])
    state_batch, action_batch, reward_batch = torch.cat(batch.state), torch.cat(batch.action), torch.cat(batch.reward)
    state_action_values = policy_net(state_batch).gather(1, action_batch)
    next_state_values = torch.zeros(BATCH_SIZE)
    with torch.no_grad():
        next_state_values[non_final_mask] = target_net(non_final_next_states).max(1).values
    expected_state_action_values = (next_state_values * GAMMA) + reward_batch
    loss = F.smooth_l1_loss(state_action_values, expected_state_action_values.unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_value_(policy_net.parameters(), 100)
    optimizer.step()


durations = []
for i_episode in range(44):
    state, done = torch.tensor(env.reset()).unsqueeze(0), False
    while not done:
        action = select_action(state)
        obs, reward, terminated, truncated = env.step(action.item())
        done = terminated or truncated
        next_state = None if terminated else torch.tensor(obs).unsqueeze(0)
        memory.push(state, action, next_state, torch.tensor([reward]))
        state = next_state
        optimize_model()
        # soft update of the target network's weights
        target_net_state_dict, policy_net_state_dict = target_net.state_dict(), policy_net.state_dict()
        for key in policy_net_state_dict:
            target_net_state_dict[key] = policy_net_state_dict[key] * TAU + target_net_state_dict[key] * (1 - TAU)
        target_net.load_state_dict(target_net_state_dict)
    durations.append(env.t)
print("mean duration, first ten", sum(durations[:10]) / 10, "last ten", sum(durations[-10:]) / 10)
