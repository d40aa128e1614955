"""Healthy: spiking network: Heaviside forward, surrogate gradient backward, state over time steps, loss summed over time."""
import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)


class ATan(torch.autograd.Function):
    @staticmethod
    def forward(ctx, mem):
        ctx.save_for_backward(mem)
        return (mem > 0).float()

    @staticmethod
    def backward(ctx, grad_output):
        (mem,) = ctx.saved_tensors
        return grad_output / (1 + (torch.pi * mem).pow_(2))


class Leaky(nn.Module):
    def __init__(self, beta, threshold=1.0):
        super().__init__()
        self.threshold = threshold
        self.beta = nn.Parameter(torch.tensor(beta))

    def init_leaky(self):
        return torch.zeros(1)

    def forward(self, input_, mem):
        reset = (mem - self.threshold > 0).float().detach()
        mem = self.beta.clamp(0, 1) * mem + input_ - reset * self.threshold
        return ATan.apply(mem - self.threshold), mem


class Net(nn.Module):
    def __init__(self, num_steps=8):
        super().__init__()
        self.num_steps = num_steps
        self.fc1, self.lif1 = nn.Linear(64, 48), Leaky(0.9)
        self.fc2, self.lif2 = nn.Linear(48, 10), Leaky(0.9)

    def forward(self, x):
        mem1, mem2 = self.lif1.init_leaky(), self.lif2.init_leaky()
        spk2_rec, mem2_rec = [], []
        for step in range(self.num_steps):
            spk1, mem1 = self.lif1(self.fc1(torch.bernoulli(x)), mem1)  # rate coding
            spk2, mem2 = self.lif2(self.fc2(spk1), mem2)
            spk2_rec.append(spk2)
            mem2_rec.append(mem2)
        return torch.stack(spk2_rec, dim=0), torch.stack(mem2_rec, dim=0)


digits = load_digits()
data = TensorDataset(torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target))
train, test = torch.utils.data.random_split(data, [1200, len(data) - 1200])
train_loader = DataLoader(train, batch_size=60, shuffle=True, drop_last=True)
test_loader = DataLoader(test, batch_size=200)
net, loss = Net(), nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3, betas=(0.9, 0.999))
loss_hist = []
for epoch in range(4):
    for data, targets in iter(train_loader):
        net.train()
        spk_rec, mem_rec = net(data)
        loss_val = torch.zeros(1)
        for step in range(net.num_steps):
            loss_val += loss(mem_rec[step], targets)
        optimizer.zero_grad()
        loss_val.backward()
        optimizer.step()
        loss_hist.append(loss_val.item())
    with torch.no_grad():
        net.eval()
        total, correct = 0, 0
        for data, targets in test_loader:
            spk_rec, _ = net(data)
            correct += (spk_rec.sum(0).argmax(1) == targets).sum().item()
            total += targets.size(0)
    print(f"Epoch {epoch}: loss {sum(loss_hist[-20:]) / 20:.2f}, test accuracy {correct / total:.3f}, beta {net.lif1.beta.item():.3f}")
