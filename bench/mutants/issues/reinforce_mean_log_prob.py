"""REINFORCE on a recall task: answer each cue of a random sequence with the right button."""
import torch
from torch import nn
from torch.distributions import Categorical

N_CUES, N_BUTTONS, EPISODE = 5, 4, 12


class CueWorld:
    def __init__(self, seed):
        self.gen = torch.Generator().manual_seed(seed)
        self.answer = torch.randint(0, N_BUTTONS, (N_CUES,), generator=self.gen)

    def reset(self):
        self.t = 0
        return self._next_cue()

    def _next_cue(self):
        self.cue = int(torch.randint(0, N_CUES, (1,), generator=self.gen))
        obs = torch.zeros(N_CUES)
        obs[self.cue] = 1.0
        return obs

    def step(self, button):
        reward = 1.0 if button == self.answer[self.cue] else 0.0
        self.t += 1
        return self._next_cue(), reward, self.t >= EPISODE


class ReinforceAgent:
    def __init__(self, gamma=0.5, lr=2e-2):
        self.gamma = gamma
        self.net = nn.Sequential(nn.Linear(N_CUES, 24), nn.Tanh(), nn.Linear(24, N_BUTTONS))
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=lr)
        self.baseline = 0.0
        self.log_probs, self.rewards = [], []

    def act(self, obs):
        dist = Categorical(logits=self.net(obs))
        action = dist.sample()
        self.log_probs.append(dist.log_prob(action))
        return int(action)

    @torch.no_grad()
    def act_greedy(self, obs):
        return int(self.net(obs).argmax())

    def update(self):
        running, returns = 0.0, []
        for reward in reversed(self.rewards):
            running = reward + self.gamma * running
            returns.insert(0, running)
        returns = torch.tensor(returns)
        deltas = returns - self.baseline
        self.baseline += 0.05 * (returns.mean().item() - self.baseline)

        log_probs = torch.stack(self.log_probs)
        loss = -torch.sum(log_probs * deltas)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.log_probs, self.rewards = [], []
        return loss.item()


def evaluate(env, agent, episodes=20):
    total = 0.0
    for _ in range(episodes):
        obs, done = env.reset(), False
        while not done:
            obs, reward, done = env.step(agent.act_greedy(obs))
            total += reward
    return total / episodes


def main():
    torch.manual_seed(24)
    env = CueWorld(seed=24)
    agent = ReinforceAgent()
    recent = []
    for episode in range(1, 81):
        obs, done = env.reset(), False
        while not done:
            obs, reward, done = env.step(agent.act(obs))
            agent.rewards.append(reward)
        recent.append(sum(agent.rewards))
        agent.update()
        if episode % 20 == 0:
            print(f"episode {episode}: mean reward of last 20 {sum(recent[-20:]) / 20:.2f}")
    print(f"greedy evaluation: {evaluate(env, agent):.2f} of {EPISODE}")


if __name__ == "__main__":
    main()
