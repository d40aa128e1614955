# value regression from a replay memory (preallocated); the priorities of a random part are renewed from time to time
import torch
from torch import nn
torch.manual_seed(0)
class Memory:
    def __init__(self, cap):
        self.state = torch.zeros(cap, 6); self.value = torch.zeros(cap); self.prio = torch.ones(cap); self.size = 0; self.pos = 0
    def add(self, s, v):
        for a, b in zip(s, v):
            self.state[self.pos], self.value[self.pos] = a, b
            self.pos = (self.pos + 1) % len(self.state); self.size = min(self.size + 1, len(self.state))
    def sample(self, n):
        return torch.multinomial(self.prio[:self.size], n)
w = torch.randn(6)
mem = Memory(5000)
net = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 1)); opt = torch.optim.Adam(net.parameters(), 1e-3)
for it in range(70):
    s = torch.randn(32, 6); mem.add(s, torch.tanh(s @ w))
    for _ in range(10):
        i = mem.sample(32)
        loss = nn.functional.mse_loss(net(mem.state[i]).squeeze(1), mem.value[i])
        opt.zero_grad(); loss.backward(); opt.step()
    if it % 5 == 4:
        part = torch.randperm(mem.size)[:400]
        with torch.no_grad():
            err = (net(mem.state[part]).squeeze(1) - mem.value[part]).abs()
        mem.prio[part] = err + .05
        print(it, loss.item(), err.mean().item())
