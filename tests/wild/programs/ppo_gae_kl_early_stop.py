"""PPO with GAE: several epochs of minibatches over each rollout, stopped early by the approximate KL; rate annealed by hand."""
import numpy as np
import torch
import torch.nn as nn


def layer_init(layer, std=np.sqrt(2)):
    nn.init.orthogonal_(layer.weight, std)
    nn.init.constant_(layer.bias, 0.0)
    return layer


class Agent(nn.Module):
    def __init__(self, obs_dim, act_dim):
        super().__init__()
        self.critic = nn.Sequential(layer_init(nn.Linear(obs_dim, 32)), nn.Tanh(), layer_init(nn.Linear(32, 1), std=1.0))
        self.actor_mean = nn.Sequential(layer_init(nn.Linear(obs_dim, 32)), nn.Tanh(), layer_init(nn.Linear(32, act_dim), std=0.01))
        self.actor_logstd = nn.Parameter(torch.zeros(1, act_dim))

    def get_value(self, x):
        return self.critic(x)

    def get_action_and_value(self, x, action=None):
        mean = self.actor_mean(x)
        probs = torch.distributions.Normal(mean, self.actor_logstd.expand_as(mean).exp())
        if action is None:
            action = probs.sample()
        return action, probs.log_prob(action).sum(1), probs.entropy().sum(1), self.critic(x)


class Pendulums:
    """Damped points pushed by a force; the reward is minus the distance from the origin."""

    def __init__(self, n, rng):
        self.rng, self.n = rng, n
        self.state = rng.normal(size=(n, 2)).astype(np.float32)
        self.t = 0

    def step(self, force):
        x, v = self.state.T
        v = 0.9 * v + 0.3 * np.clip(force[:, 0], -1, 1)
        self.state = np.stack([x + 0.3 * v, v], 1).astype(np.float32)
        reward = -np.abs(self.state[:, 0])
        self.t += 1
        done = self.t % 25 == 0
        if done:
            self.state = self.rng.normal(size=(self.n, 2)).astype(np.float32)
        return self.state, reward, done


seed, num_envs, num_steps, iterations = 1, 8, 25, 10
update_epochs, num_minibatches, learning_rate = 4, 4, 3e-3
gamma, gae_lambda, clip_coef, ent_coef, vf_coef, max_grad_norm, target_kl = 0.97, 0.95, 0.2, 0.0, 0.5, 0.5, 0.05
rng = np.random.default_rng(seed)
np.random.seed(seed)
torch.manual_seed(seed)

envs = Pendulums(num_envs, rng)
agent = Agent(2, 1)
optimizer = torch.optim.Adam(agent.parameters(), lr=learning_rate, eps=1e-5)
obs = torch.zeros(num_steps, num_envs, 2)
actions = torch.zeros(num_steps, num_envs, 1)
logprobs, rewards, dones, values = (torch.zeros(num_steps, num_envs) for _ in range(4))
next_obs, next_done = torch.tensor(envs.state), 0.0
batch_size = num_envs * num_steps

for iteration in range(1, iterations + 1):
    optimizer.param_groups[0]["lr"] = (1.0 - (iteration - 1.0) / iterations) * learning_rate
    for step in range(num_steps):
        obs[step], dones[step] = next_obs, next_done
        with torch.no_grad():
            action, logprob, _, value = agent.get_action_and_value(next_obs)
            values[step] = value.flatten()
        actions[step], logprobs[step] = action, logprob
        state, reward, done = envs.step(action.numpy())
        rewards[step], next_obs, next_done = torch.tensor(reward), torch.tensor(state), float(done)

    with torch.no_grad():
        next_value = agent.get_value(next_obs).flatten()
        advantages, lastgaelam = torch.zeros_like(rewards), 0
        for t in reversed(range(num_steps)):
            nonterminal = 1.0 - (next_done if t == num_steps - 1 else dones[t + 1])
            following = next_value if t == num_steps - 1 else values[t + 1]
            delta = rewards[t] + gamma * following * nonterminal - values[t]
            advantages[t] = lastgaelam = delta + gamma * gae_lambda * nonterminal * lastgaelam
        returns = advantages + values

    b_obs, b_actions = obs.reshape(-1, 2), actions.reshape(-1, 1)
    b_logprobs, b_advantages, b_returns = logprobs.reshape(-1), advantages.reshape(-1), returns.reshape(-1)
    b_inds = np.arange(batch_size)
    for epoch in range(update_epochs):
        np.random.shuffle(b_inds)
        for start in range(0, batch_size, batch_size // num_minibatches):
            mb = b_inds[start:start + batch_size // num_minibatches]
            _, newlogprob, entropy, newvalue = agent.get_action_and_value(b_obs[mb], b_actions[mb])
            logratio = newlogprob - b_logprobs[mb]
            ratio = logratio.exp()
            with torch.no_grad():
                approx_kl = ((ratio - 1) - logratio).mean()
            adv = b_advantages[mb]
            adv = (adv - adv.mean()) / (adv.std() + 1e-8)
            pg_loss = torch.max(-adv * ratio, -adv * torch.clamp(ratio, 1 - clip_coef, 1 + clip_coef)).mean()
            v_loss = 0.5 * ((newvalue.view(-1) - b_returns[mb]) ** 2).mean()
            loss = pg_loss - ent_coef * entropy.mean() + v_loss * vf_coef
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), max_grad_norm)
            optimizer.step()
        if approx_kl > target_kl:
            break
    print(f"iteration {iteration} reward {rewards.mean().item():.3f} kl {approx_kl.item():.4f}")
