"""REINFORCE (Monte-Carlo policy gradient) on a small sorting task, policy as a dict of tensors."""
import torch

torch.manual_seed(4)
N_FEATURES, N_BINS, EP_LEN = 6, 4, 15
GAMMA, LR, UPDATES, EPISODES_PER_UPDATE = 0.9, 0.02, 80, 4


class Conveyor:
    """Items arrive one after the other; each must be put in the bin of its kind.

    A wrong bin gives -1 and jams the belt: the next reward is lowered by 0.5 as well.
    """

    def __init__(self, seed):
        self.rng = torch.Generator().manual_seed(seed)
        self.prototypes = torch.randn(N_BINS, N_FEATURES, generator=torch.Generator().manual_seed(99))

    def _new_item(self):
        self.kind = torch.randint(N_BINS, (1,), generator=self.rng).item()
        return self.prototypes[self.kind] + 0.3 * torch.randn(N_FEATURES, generator=self.rng)

    def reset(self):
        self.t, self.jammed = 0, False
        return self._new_item()

    def step(self, action):
        right = action == self.kind
        reward = (1.0 if right else -1.0) - (0.5 if self.jammed else 0.0)
        self.jammed = not right
        self.t += 1
        return self._new_item(), reward, self.t >= EP_LEN


def init_policy(hidden=24):
    theta = {
        'W1': torch.randn(N_FEATURES, hidden) * N_FEATURES ** -0.5,
        'b1': torch.zeros(hidden),
        'W2': torch.randn(hidden, N_BINS) * 0.1,
        'b2': torch.zeros(N_BINS),
    }
    return {k: v.requires_grad_(True) for k, v in theta.items()}


def policy(theta, s):
    h = torch.tanh(s @ theta['W1'] + theta['b1'])
    return torch.distributions.Categorical(logits=h @ theta['W2'] + theta['b2'])


def run_episode(env, theta):
    log_probs, rewards = [], []
    s, done = env.reset(), False
    while not done:
        dist = policy(theta, s)
        a = dist.sample()
        s, r, done = env.step(a.item())
        log_probs.append(dist.log_prob(a))
        rewards.append(r)
    return torch.stack(log_probs), rewards


def discounted_returns(rewards):
    returns, g = [], 0.0
    for r in reversed(rewards):
        g = r + GAMMA * g
        returns.insert(0, g)
    return torch.tensor(returns)


@torch.no_grad()
def evaluate(theta, episodes=20):
    env, total = Conveyor(seed=12345), 0.0
    for _ in range(episodes):
        s, done = env.reset(), False
        while not done:
            s, r, done = env.step(policy(theta, s).probs.argmax().item())
            total += r
    return total / episodes


env, theta = Conveyor(seed=0), init_policy()
optimizer = torch.optim.Adam(theta.values(), lr=LR)

for update in range(1, UPDATES + 1):
    log_probs, returns, scores = [], [], []
    for _ in range(EPISODES_PER_UPDATE):
        lp, rewards = run_episode(env, theta)
        log_probs.append(lp)
        returns.append(discounted_returns(rewards))
        scores.append(sum(rewards))
    log_probs, returns = torch.stack(log_probs), torch.stack(returns)
    baseline = returns.mean(dim=0, keepdim=True)
    loss = -(log_probs * (returns - baseline)).sum(dim=1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if update % 20 == 0:
        print(f'update {update:4d}  mean training score {sum(scores) / len(scores):7.2f}  '
              f'greedy score {evaluate(theta):7.2f}')

print(f'final greedy score over 20 new episodes: {evaluate(theta):.3f} (best possible {EP_LEN})')
