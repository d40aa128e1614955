"""Healthy: PPO actor-critic in CleanRL's style: rollout without gradients, several epochs of minibatches over it."""
import random
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
from torch.distributions.categorical import Categorical


@dataclass
class Args:
    seed: int = 1
    num_envs: int = 8
    num_steps: int = 32
    num_iterations: int = 12
    learning_rate: float = 5e-3
    anneal_lr: bool = True
    gamma: float = 0.95
    gae_lambda: float = 0.9
    num_minibatches: int = 4
    update_epochs: int = 4
    clip_coef: float = 0.2
    ent_coef: float = 0.005
    vf_coef: float = 0.5
    max_grad_norm: float = 0.5


class TargetChase:
    """Vector of one-dimensional worlds: stay close to a drifting target."""

    def __init__(self, n, rng):
        self.n, self.rng = n, rng

    def reset(self):
        self.pos, self.tgt, self.t = self.rng.uniform(-1, 1, self.n), self.rng.uniform(-1, 1, self.n), 0
        return self._obs()

    def _obs(self):
        return np.stack([self.pos, self.tgt, self.tgt - self.pos], 1).astype(np.float32)

    def step(self, action):
        self.pos = np.clip(self.pos + 0.2 * (action - 1), -2, 2)
        self.tgt = np.clip(self.tgt + self.rng.normal(0, 0.05, self.n), -2, 2)
        self.t += 1
        reward, done = -np.abs(self.pos - self.tgt), self.t % 16 == 0
        return (self.reset() if done else self._obs()), reward.astype(np.float32), np.full(self.n, float(done), np.float32)


def layer_init(layer, std=np.sqrt(2)):
    torch.nn.init.orthogonal_(layer.weight, std)
    torch.nn.init.constant_(layer.bias, 0.0)
    return layer


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.critic = nn.Sequential(layer_init(nn.Linear(3, 32)), nn.Tanh(), layer_init(nn.Linear(32, 1), std=1.0))
        self.actor = nn.Sequential(layer_init(nn.Linear(3, 32)), nn.Tanh(), layer_init(nn.Linear(32, 3), std=0.01))

    def get_value(self, x):
        return self.critic(x)

    def get_action_and_value(self, x, action=None):
        probs = Categorical(logits=self.actor(x))
        action = probs.sample() if action is None else action
        return action, probs.log_prob(action), probs.entropy(), self.critic(x)


args = Args()
random.seed(args.seed), np.random.seed(args.seed), torch.manual_seed(args.seed)
torch.set_num_threads(1)
envs, policy = TargetChase(args.num_envs, np.random), ActorCritic()
optimizer = optim.Adam(policy.parameters(), lr=args.learning_rate, eps=1e-5)
T, N = args.num_steps, args.num_envs
obs, actions = torch.zeros(T, N, 3), torch.zeros(T, N, dtype=torch.long)
logprobs, rewards, dones, values = (torch.zeros(T, N) for _ in range(4))
next_obs, next_done = torch.from_numpy(envs.reset()), torch.zeros(N)
returns_log = []
for iteration in range(1, args.num_iterations + 1):
    if args.anneal_lr:
        optimizer.param_groups[0]["lr"] = (1.0 - (iteration - 1.0) / args.num_iterations) * args.learning_rate
    for step in range(T):
        obs[step], dones[step] = next_obs, next_done
        with torch.no_grad():
            action, logprob, _, value = policy.get_action_and_value(next_obs)
            values[step] = value.flatten()
        actions[step], logprobs[step] = action, logprob
        o, reward, done = envs.step(action.numpy())
        rewards[step], next_obs, next_done = torch.from_numpy(reward), torch.from_numpy(o), torch.from_numpy(done)
    with torch.no_grad():
        next_value, advantages, lastgaelam = policy.get_value(next_obs).flatten(), torch.zeros_like(rewards), 0
        for t in reversed(range(T)):
            nonterminal, nextvalues = (1 - next_done, next_value) if t == T - 1 else (1 - dones[t + 1], values[t + 1])
            delta = rewards[t] + args.gamma * nextvalues * nonterminal - values[t]
            advantages[t] = lastgaelam = delta + args.gamma * args.gae_lambda * nonterminal * lastgaelam
        returns = advantages + values
    b_obs, b_actions = obs.flatten(0, 1), actions.flatten()
    b_logprobs, b_adv, b_returns = logprobs.flatten(), advantages.flatten(), returns.flatten()
    for epoch in range(args.update_epochs):
        for mb in torch.randperm(T * N).chunk(args.num_minibatches):
            _, newlogprob, entropy, newvalue = policy.get_action_and_value(b_obs[mb], b_actions[mb])
            ratio = (newlogprob - b_logprobs[mb]).exp()
            adv = (b_adv[mb] - b_adv[mb].mean()) / (b_adv[mb].std() + 1e-8)
            pg_loss = torch.max(-adv * ratio, -adv * ratio.clamp(1 - args.clip_coef, 1 + args.clip_coef)).mean()
            v_loss = 0.5 * (newvalue.view(-1) - b_returns[mb]).pow(2).mean()
            loss = pg_loss - args.ent_coef * entropy.mean() + v_loss * args.vf_coef
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(policy.parameters(), args.max_grad_norm)
            optimizer.step()
    returns_log.append(rewards.mean().item())
print("mean reward per step: first %.3f, last %.3f" % (returns_log[0], returns_log[-1]))
