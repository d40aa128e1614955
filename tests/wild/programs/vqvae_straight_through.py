"""Healthy: VQ-VAE: argmin and detach in the graph on purpose, the straight-through estimator keeps the encoder reachable."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class VectorQuantizer(nn.Module):
    def __init__(self, num_embeddings=16, embedding_dim=4, commitment_cost=0.25):
        super().__init__()
        self._embedding = nn.Embedding(num_embeddings, embedding_dim)
        self._embedding.weight.data.normal_(0, 0.5)
        self._commitment_cost = commitment_cost

    def forward(self, inputs):
        distances = torch.cdist(inputs, self._embedding.weight)
        encoding_indices = torch.argmin(distances, dim=1)
        quantized = self._embedding(encoding_indices)
        e_latent_loss = F.mse_loss(quantized.detach(), inputs)
        q_latent_loss = F.mse_loss(quantized, inputs.detach())
        loss = q_latent_loss + self._commitment_cost * e_latent_loss
        quantized = inputs + (quantized - inputs).detach()
        return loss, quantized, encoding_indices


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 4))
        self.vq = VectorQuantizer()
        self.decoder = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 10))

    def forward(self, x):
        loss, quantized, idx = self.vq(self.encoder(x))
        return loss, self.decoder(quantized), idx


torch.manual_seed(0)
torch.set_num_threads(1)
modes = torch.randn(8, 10)


def sample(n):
    return modes[torch.randint(0, 8, (n,))] + 0.2 * torch.randn(n, 10)


model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, amsgrad=False)
train_res_recon_error = []
model.train()
for i in range(200):
    data = sample(64)
    optimizer.zero_grad()
    vq_loss, data_recon, _ = model(data)
    recon_error = F.mse_loss(data_recon, data)
    loss = recon_error + vq_loss
    loss.backward()
    optimizer.step()
    train_res_recon_error.append(recon_error.item())
    if (i + 1) % 50 == 0:
        print("%d iterations recon_error: %.3f" % (i + 1, sum(train_res_recon_error[-50:]) / 50))

model.eval()
with torch.no_grad():
    _, recon, idx = model(sample(512))
print("codes in use", len(idx.unique()))
