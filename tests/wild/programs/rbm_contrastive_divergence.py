"""Healthy: restricted Boltzmann machine: difference of free energies, the Gibbs chain detached, hand-made learning-rate and momentum."""
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.utils.data
from sklearn.datasets import load_digits


class RBM(nn.Module):
    def __init__(self, n_vis, n_hin, k=1):
        super(RBM, self).__init__()
        self.W = nn.Parameter(torch.randn(n_hin, n_vis) * 1e-2)
        self.v_bias = nn.Parameter(torch.zeros(n_vis))
        self.h_bias = nn.Parameter(torch.zeros(n_hin))
        self.k = k

    def v_to_h(self, v):
        p_h = torch.sigmoid(F.linear(v, self.W, self.h_bias))
        return p_h, torch.bernoulli(p_h)

    def h_to_v(self, h):
        p_v = torch.sigmoid(F.linear(h, self.W.t(), self.v_bias))
        return p_v, torch.bernoulli(p_v)

    def forward(self, v):
        _, h_ = self.v_to_h(v)
        for _ in range(self.k):
            _, v_ = self.h_to_v(h_)
            _, h_ = self.v_to_h(v_)
        return v, v_

    def free_energy(self, v):
        vbias_term = v.mv(self.v_bias)
        hidden_term = F.softplus(F.linear(v, self.W, self.h_bias)).sum(1)
        return (-hidden_term - vbias_term).mean()


torch.manual_seed(0)
torch.set_num_threads(1)
images = torch.tensor(load_digits().data, dtype=torch.float32) / 16
train_loader = torch.utils.data.DataLoader(images[:1200], batch_size=60, shuffle=True)
rbm = RBM(64, 32, k=1)
train_op = torch.optim.SGD(rbm.parameters(), 0.1, momentum=0.5)
for epoch in range(6):
    loss_ = []
    for data in train_loader:
        sample_data = data.bernoulli()
        v, v1 = rbm(sample_data)
        v1 = v1.detach()
        loss = rbm.free_energy(v) - rbm.free_energy(v1)
        loss_.append(loss.data)
        train_op.zero_grad()
        loss.backward()
        train_op.step()
    with torch.no_grad():
        p_h, _ = rbm.v_to_h(images[1200:])
        error = (rbm.h_to_v(p_h)[0] - images[1200:]).square().mean().item()
    print(f"epoch {epoch} free energy gap {torch.stack(loss_).mean().item():.3f} reconstruction error {error:.4f}")
