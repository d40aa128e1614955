"""Healthy: adversarial autoencoder: the encoder is in two optimizers, three phases a batch, the second phase after eval for the prior."""
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

TINY = 1e-8
torch.manual_seed(10)
torch.set_num_threads(1)


class Q_net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin1, self.lin2, self.lin3gauss = nn.Linear(64, 64), nn.Linear(64, 32), nn.Linear(32, 2)

    def forward(self, x):
        x = F.dropout(self.lin1(x), p=0.1, training=self.training)
        x = F.dropout(self.lin2(F.relu(x)), p=0.1, training=self.training)
        return self.lin3gauss(F.relu(x))


class P_net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin1, self.lin2 = nn.Linear(2, 64), nn.Linear(64, 64)

    def forward(self, x):
        return torch.sigmoid(self.lin2(F.relu(self.lin1(x))))


class D_net_gauss(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin1, self.lin2 = nn.Linear(2, 32), nn.Linear(32, 1)

    def forward(self, x):
        return torch.sigmoid(self.lin2(F.relu(self.lin1(F.dropout(x, p=0.2, training=self.training)))))


images = torch.tensor(load_digits().data, dtype=torch.float32)[:900] / 16
loader = DataLoader(TensorDataset(images), batch_size=60, shuffle=True)
Q, P, D_gauss = Q_net(), P_net(), D_net_gauss()
optim_P, optim_Q_enc = optim.Adam(P.parameters(), lr=2e-3), optim.Adam(Q.parameters(), lr=2e-3)
optim_Q_gen, optim_D = optim.Adam(Q.parameters(), lr=5e-4), optim.Adam(D_gauss.parameters(), lr=5e-4)

for epoch in range(5):
    for (X,) in loader:
        P.zero_grad(), Q.zero_grad(), D_gauss.zero_grad()
        X_sample = P(Q(X))
        recon_loss = F.binary_cross_entropy(X_sample + TINY, X + TINY)
        recon_loss.backward()
        optim_P.step()
        optim_Q_enc.step()

        Q.eval()
        D_gauss.zero_grad()
        z_real_gauss = torch.randn(X.size(0), 2) * 5.0
        D_real_gauss, D_fake_gauss = D_gauss(z_real_gauss), D_gauss(Q(X).detach())
        D_loss = -torch.mean(torch.log(D_real_gauss + TINY) + torch.log(1 - D_fake_gauss + TINY))
        D_loss.backward()
        optim_D.step()

        Q.train()
        Q.zero_grad()
        G_loss = -torch.mean(torch.log(D_gauss(Q(X)) + TINY))
        G_loss.backward()
        optim_Q_gen.step()
    if epoch % 2 == 0:
        print(f"Epoch {epoch}: recon {recon_loss.item():.4f} D {D_loss.item():.3f} G {G_loss.item():.3f}")
Q.eval()
with torch.no_grad():
    codes = Q(images)
print("codes: std", [round(v, 2) for v in codes.std(0).tolist()])
