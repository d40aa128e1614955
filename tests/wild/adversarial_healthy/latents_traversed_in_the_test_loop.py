# an autoencoder's decoder evaluated in the loop over the test set: the calls of the decoder get other inputs
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
x = torch.randn(1200, 3) @ torch.randn(3, 16)
enc = nn.Linear(16, 3); dec = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 16))
train_loader = DataLoader(x[:1000], 50, shuffle=True); test_loader = DataLoader(x[1000:], 100)
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()], 2e-3)
for ep in range(6):
    for a in train_loader:
        loss = nn.functional.mse_loss(dec(enc(a)), a)
        opt.zero_grad(); loss.backward(); opt.step()
    print(ep, loss.item())
enc.eval(); dec.eval()
with torch.no_grad():
    # latent traversals: each code of the test set along one axis
    for a in test_loader:
        z = enc(a)
        for k in range(3):
            far = torch.zeros_like(z); far[:, k] = 20 * z[:, k]
            moved = dec(far)
    print(moved.std())
    print("samples", dec(torch.randn(100, 3)).std())
