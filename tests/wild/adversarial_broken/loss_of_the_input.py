"""The loss of a denoiser compares the noisy input with the clean one: the output of the model is not used."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
clean = torch.sin(torch.linspace(0, 6, 24) + torch.rand(256, 1) * 6)
loader = DataLoader(TensorDataset(clean), batch_size=32, shuffle=True)
denoiser = nn.Sequential(nn.Linear(24, 16), nn.ReLU(), nn.Linear(16, 24))
optimizer = torch.optim.Adam(denoiser.parameters(), lr=1e-3)
criterion = nn.MSELoss()
for epoch in range(5):
    total = 0.0
    for (batch,) in loader:
        noisy = (batch + 0.3 * torch.randn_like(batch)).requires_grad_()
        output = denoiser(noisy)
        loss = criterion(noisy, batch)
        optimizer.zero_grad()
        loss.backward()  # error: loss-without-parameters
        optimizer.step()
        total += loss.item()
    print(epoch, total / len(loader))
