"""Healthy: TD3 as published by its authors: select_action on a numpy state, twin critics in one module, the actor stepped every other time."""
import copy

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Actor(nn.Module):
    def __init__(self, state_dim, action_dim, max_action):
        super(Actor, self).__init__()
        self.l1 = nn.Linear(state_dim, 32)
        self.l2 = nn.Linear(32, action_dim)
        self.max_action = max_action

    def forward(self, state):
        return self.max_action * torch.tanh(self.l2(F.relu(self.l1(state))))


class Critic(nn.Module):
    def __init__(self, state_dim, action_dim):
        super(Critic, self).__init__()
        self.l1, self.l2 = nn.Linear(state_dim + action_dim, 32), nn.Linear(32, 1)
        self.l4, self.l5 = nn.Linear(state_dim + action_dim, 32), nn.Linear(32, 1)

    def forward(self, state, action):
        sa = torch.cat([state, action], 1)
        return self.l2(F.relu(self.l1(sa))), self.l5(F.relu(self.l4(sa)))

    def Q1(self, state, action):
        return self.l2(F.relu(self.l1(torch.cat([state, action], 1))))


class TD3(object):
    def __init__(self, state_dim, action_dim, max_action, discount=0.9, tau=0.01, policy_freq=2):
        self.actor = Actor(state_dim, action_dim, max_action)
        self.actor_target = copy.deepcopy(self.actor)
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters(), lr=3e-3)
        self.critic = Critic(state_dim, action_dim)
        self.critic_target = copy.deepcopy(self.critic)
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters(), lr=3e-3)
        self.max_action, self.discount, self.tau, self.policy_freq = max_action, discount, tau, policy_freq
        self.total_it = 0

    def select_action(self, state):
        state = torch.FloatTensor(state.reshape(1, -1))
        return self.actor(state).cpu().data.numpy().flatten()

    def train(self, replay_buffer, batch_size=64):
        self.total_it += 1
        state, action, next_state, reward, not_done = replay_buffer.sample(batch_size)
        with torch.no_grad():
            noise = (torch.randn_like(action) * 0.2).clamp(-0.5, 0.5)
            next_action = (self.actor_target(next_state) + noise).clamp(-self.max_action, self.max_action)
            target_Q1, target_Q2 = self.critic_target(next_state, next_action)
            target_Q = reward + not_done * self.discount * torch.min(target_Q1, target_Q2)
        current_Q1, current_Q2 = self.critic(state, action)
        critic_loss = F.mse_loss(current_Q1, target_Q) + F.mse_loss(current_Q2, target_Q)
        self.critic_optimizer.zero_grad()
        critic_loss.backward()
        self.critic_optimizer.step()

        if self.total_it % self.policy_freq == 0:
            actor_loss = -self.critic.Q1(state, self.actor(state)).mean()
            self.actor_optimizer.zero_grad()
            actor_loss.backward()
            self.actor_optimizer.step()
            for param, target_param in zip(self.critic.parameters(), self.critic_target.parameters()):
                target_param.data.copy_(self.tau * param.data + (1 - self.tau) * target_param.data)
            for param, target_param in zip(self.actor.parameters(), self.actor_target.parameters()):
                target_param.data.copy_(self.tau * param.data + (1 - self.tau) * target_param.data)


class ReplayBuffer(object):
    def __init__(self, state_dim, action_dim, max_size=int(1e4)):
        self.max_size, self.ptr, self.size = max_size, 0, 0
        self.state, self.next_state = np.zeros((max_size, state_dim)), np.zeros((max_size, state_dim))
        self.action = np.zeros((max_size, action_dim))
        self.reward, self.not_done = np.zeros((max_size, 1)), np.zeros((max_size, 1))

    def add(self, state, action, next_state, reward, done):
        i = self.ptr
        self.state[i], self.action[i], self.next_state[i] = state, action, next_state
        self.reward[i], self.not_done[i] = reward, 1.0 - done
        self.ptr, self.size = (i + 1) % self.max_size, min(self.size + 1, self.max_size)

    def sample(self, batch_size):
        ind = np.random.randint(0, self.size, size=batch_size)
        arrays = self.state, self.action, self.next_state, self.reward, self.not_done
        return tuple(torch.FloatTensor(array[ind]) for array in arrays)


def step(state, action):
    velocity = 0.8 * state[1] + 0.2 * action[0]
    following = np.array([np.clip(state[0] + 0.3 * velocity, -2, 2), velocity])
    return following, -following[0] ** 2 - 0.01 * action[0] ** 2


if __name__ == "__main__":
    torch.manual_seed(0)
    np.random.seed(0)
    torch.set_num_threads(1)
    policy, replay_buffer, max_action = TD3(2, 1, 1.0), ReplayBuffer(2, 1), 1.0
    returns = []
    for episode in range(14):
        state, total = np.random.uniform(-1.5, 1.5, 2), 0.0
        for t in range(30):
            if episode < 3:
                action = np.random.uniform(-1, 1, 1)
            else:
                action = (policy.select_action(state) + np.random.normal(0, 0.1, 1)).clip(-max_action, max_action)
            next_state, reward = step(state, action)
            replay_buffer.add(state, action, next_state, reward, 0.0)
            state, total = next_state, total + reward
            if episode >= 3:
                policy.train(replay_buffer)
        returns.append(total)
    print(f"Total T: {policy.total_it} mean return of the first three {np.mean(returns[:3]):.2f}, of the last three {np.mean(returns[-3:]):.2f}")
