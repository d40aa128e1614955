"""An autoencoder that ends in a sigmoid, on pictures that were normalised to between -1 and 1."""
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
pictures = (torch.rand(256, 1, 8, 8) ** 2 - 0.5) / 0.5
encoder = nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU())
decoder = nn.Sequential(nn.Linear(16, 64), nn.Sigmoid(), nn.Unflatten(1, (1, 8, 8)))
optimizer = torch.optim.AdamW([*encoder.parameters(), *decoder.parameters()], lr=1e-3)
for epoch in range(5):
    total = 0.0
    for batch in pictures[torch.randperm(256)].split(32):
        rebuilt = decoder(encoder(batch))
        loss = nn.functional.mse_loss(rebuilt, batch)  # error: activation-clamps-output
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(epoch, total / 8)
