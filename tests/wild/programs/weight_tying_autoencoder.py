"""Healthy: weight tying: a denoising autoencoder, its decoder the transposed encoder, and a block used at several depths."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class TiedAutoencoder(nn.Module):
    def __init__(self, n_in, n_hidden):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_hidden, n_in))
        self.b_hidden = nn.Parameter(torch.zeros(n_hidden))
        self.b_out = nn.Parameter(torch.zeros(n_in))
        nn.init.xavier_uniform_(self.weight)
        # one block applied three times, as in ALBERT and universal transformers
        self.shared = nn.Sequential(nn.LayerNorm(n_hidden), nn.Linear(n_hidden, n_hidden), nn.GELU())

    def forward(self, x):
        h = torch.tanh(F.linear(x, self.weight, self.b_hidden))
        for _ in range(3):
            h = h + 0.3 * self.shared(h)
        return F.linear(h, self.weight.t(), self.b_out)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    mixing = torch.randn(6, 24) / 6 ** 0.5

    def sample(n):
        return torch.randn(n, 6) @ mixing

    train_x, val_x = sample(1024), sample(256)
    ae = TiedAutoencoder(24, 16)
    opt = torch.optim.Adam(ae.parameters(), lr=5e-3)
    noisy_val = val_x + 0.3 * torch.randn_like(val_x)
    for epoch in range(8):
        ae.train()
        for idx in torch.randperm(1024).split(64):
            clean = train_x[idx]
            loss = F.mse_loss(ae(clean + 0.3 * torch.randn_like(clean)), clean)
            ae.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
        ae.eval()
        with torch.no_grad():
            val = F.mse_loss(ae(noisy_val), val_x).item()
        print(f"epoch {epoch} denoising mse {val:.4f}")


if __name__ == "__main__":
    main()
