import torch
from torch import nn
from torch.nn import functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

torch.manual_seed(0)

LATENT = 8
EPOCHS = 20
BATCH = 64


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(64, 96)
        self.fc21 = nn.Linear(96, LATENT)
        self.fc22 = nn.Linear(96, LATENT)
        self.fc3 = nn.Linear(LATENT, 96)
        self.fc4 = nn.Linear(96, 64)

    def encode(self, x):
        h = F.relu(self.fc1(x))
        return self.fc21(h), self.fc22(h)

    def reparameterize(self, mu, logvar):
        if not self.training:
            return mu
        std = torch.exp(0.5 * logvar)
        return mu + torch.randn_like(std) * std

    def decode(self, z):
        return self.fc4(F.relu(self.fc3(z)))

    def forward(self, x):
        mu, logvar = self.encode(x)
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar


def loss_function(logits, x, mu, logvar):
    BCE = F.binary_cross_entropy_with_logits(logits, x, reduction='sum') / x.shape[0]
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp(), dim=1).mean()
    return BCE + KLD, BCE, KLD


images = torch.tensor(load_digits().data, dtype=torch.float32) / 16
idx_train, idx_val = train_test_split(range(len(images)), test_size=0.2, random_state=0)
train_x, val_x = images[idx_train], images[idx_val]

model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)


def train():
    model.train()
    total = 0.0
    for idx in torch.randperm(len(train_x)).split(BATCH):
        x = train_x[idx]
        logits, mu, logvar = model(x)
        loss, _, _ = loss_function(logits, x, mu, logvar)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(x)
    return total / len(train_x)


def test():
    model.eval()
    with torch.no_grad():
        logits, mu, logvar = model(val_x)
        loss, _, kld = loss_function(logits, val_x, mu, logvar)
        mse = F.mse_loss(torch.sigmoid(logits), val_x)
        used = (mu.var(dim=0) > 0.01).sum()
    return loss.item(), kld.item(), mse.item(), used.item()


for epoch in range(1, EPOCHS + 1):
    train_loss = train()
    if epoch % 5 == 0:
        val_loss, kld, mse, used = test()
        print(f'====> epoch {epoch}: train loss {train_loss:.4f} val loss {val_loss:.4f} '
              f'KL {kld:.4f} reconstruction MSE {mse:.4f}')

val_loss, kld, mse, used = test()
print(f'reconstruction MSE on held-out digits {mse:.4f}, latent units in use {used} of {LATENT}')
