"""The optimisation is split over methods, called in the wrong order."""
import torch
from torch import nn

torch.manual_seed(0)


class Learner:
    def __init__(self, net):
        self.net = net
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)

    def reset(self):
        self.net.zero_grad(set_to_none=False)  # error: zero-grad-before-step

    def learn(self, x, y):
        loss = nn.functional.binary_cross_entropy_with_logits(self.net(x).squeeze(1), y)
        loss.backward()
        self.reset()
        self.optimizer.step()
        return loss.item()


learner = Learner(nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1)))
for step in range(40):
    x = torch.randn(32, 3)
    value = learner.learn(x, (x.sum(1) > 0).float())
print(value)
