"""Advantage actor-critic on a contextual chain: choose the matching lever in each room."""
import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(2)
N_ROOMS, N_LEVERS, EPISODE_LEN, GAMMA = 6, 4, 10, 0.9
CORRECT = torch.randint(0, N_LEVERS, (N_ROOMS,))


class ActorCritic(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(N_ROOMS, hidden), nn.Tanh())
        self.actor = nn.Linear(hidden, N_LEVERS)
        self.critic = nn.Linear(hidden, 1)

    def forward(self, obs):
        h = self.body(obs)
        return Categorical(logits=self.actor(h)), self.critic(h)


def rollout(model, n_envs):
    """Plays n_envs episodes side by side, returns flat tensors."""
    rooms = torch.randint(0, N_ROOMS, (n_envs,))
    obs_list, act_list, rew_list = [], [], []
    for _ in range(EPISODE_LEN):
        obs = nn.functional.one_hot(rooms, N_ROOMS).float()
        with torch.no_grad():
            dist, _ = model(obs)
            actions = dist.sample()
        hit = actions == CORRECT[rooms]
        rewards = (hit.float() + 0.1 * torch.randn(n_envs)).unsqueeze(1)
        obs_list.append(obs)
        act_list.append(actions)
        rew_list.append(rewards)
        rooms = torch.where(hit, (rooms + 1) % N_ROOMS, torch.randint(0, N_ROOMS, (n_envs,)))
    returns, running = [], torch.zeros(n_envs, 1)
    for rewards in reversed(rew_list):
        running = rewards + GAMMA * running
        returns.insert(0, running)
    score = torch.stack(rew_list).sum(0).mean().item()
    return torch.cat(obs_list), torch.cat(act_list), torch.cat(returns), score


@torch.no_grad()
def greedy_accuracy(model):
    dist, _ = model(torch.eye(N_ROOMS))
    return (dist.probs.argmax(1) == CORRECT).float().mean().item()


model = ActorCritic()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for iteration in range(1, 81):
    obs, actions, returns, score = rollout(model, n_envs=16)
    dist, values = model(obs)
    advantages = returns - values
    policy_loss = -(dist.log_prob(actions).unsqueeze(1) * advantages.detach()).mean()
    value_loss = advantages.pow(2).mean()
    entropy = dist.entropy().mean()
    loss = policy_loss + 0.5 * value_loss - 0.01 * entropy

    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()

    if iteration % 20 == 0:
        print(f"iter {iteration}: reward {score:.2f} value loss {value_loss.item():.3f} "
              f"entropy {entropy.item():.3f} greedy accuracy {greedy_accuracy(model):.2f}")

with torch.no_grad():
    _, _, _, final_score = rollout(model, n_envs=300)
print(f"final mean episode reward: {final_score:.3f}")
