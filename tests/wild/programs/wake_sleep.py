"""Healthy: wake-sleep: two networks and two optimizers, each trained on samples of the other, no gradient between the phases."""
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.distributions import Bernoulli

torch.manual_seed(0)
torch.set_num_threads(1)
images = (torch.tensor(load_digits().data, dtype=torch.float32) / 16 > 0.5).float()


class Layered(nn.Module):
    """Stochastic binary layers, from the first size to the last."""

    def __init__(self, sizes):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))

    @torch.no_grad()
    def sample(self, x):
        states = [x]
        for layer in self.layers:
            states.append(Bernoulli(logits=layer(states[-1])).sample())
        return states

    def log_prob(self, states):
        return sum(Bernoulli(logits=layer(a)).log_prob(b).sum(1) for layer, a, b in zip(self.layers, states, states[1:]))


recognition, generative = Layered([64, 32, 12]), Layered([12, 32, 64])
prior = nn.Parameter(torch.zeros(12))
wake_optimizer = torch.optim.Adam([*generative.parameters(), prior], lr=3e-3)
sleep_optimizer = torch.optim.Adam(recognition.parameters(), lr=3e-3)
wake, sleep = [], []
for step in range(200):
    x = images[torch.randint(0, 1500, (64,))]
    # wake: data through the recognition network, the generative one learns to make them
    states = recognition.sample(x)[::-1]
    wake_loss = -(generative.log_prob(states) + Bernoulli(logits=prior).log_prob(states[0]).sum(1)).mean()
    wake_optimizer.zero_grad()
    wake_loss.backward()
    wake_optimizer.step()
    # sleep: a dream of the generative network, the recognition one learns to explain it
    with torch.no_grad():
        top = Bernoulli(logits=prior).sample((64,))
    dream = generative.sample(top)[::-1]
    sleep_loss = -recognition.log_prob(dream).mean()
    sleep_optimizer.zero_grad()
    sleep_loss.backward()
    sleep_optimizer.step()
    wake.append(wake_loss.item()), sleep.append(sleep_loss.item())
print(f"wake {sum(wake[:20]) / 20:.2f} -> {sum(wake[-20:]) / 20:.2f}, sleep {sum(sleep[:20]) / 20:.2f} -> {sum(sleep[-20:]) / 20:.2f}")
