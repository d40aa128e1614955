"""From "PyTorch Training", section Mixed Precision: float16 with a scaler.

Repaired: lost indentation; CUDA -> CPU (float16 asked for by name, because the CPU's default is bfloat16); data, model
and optimizer. Expected: nothing.
"""
import torch
import torch.nn as nn
from torch.amp import GradScaler, autocast
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)

device = torch.device('cpu')
X = torch.randn(1000, 4)
y = (X[:, 0] > X[:, 1]).long()
train_loader = DataLoader(TensorDataset(X, y), batch_size=64, shuffle=True)
model = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2)).to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

scaler = GradScaler('cpu')
for inputs, targets in train_loader:
    inputs, targets = inputs.to(device), targets.to(device)
    optimizer.zero_grad()
    with autocast('cpu', dtype=torch.float16):  # forward pass in mixed precision
        outputs = model(inputs)
        loss = criterion(outputs, targets)
    scaler.scale(loss).backward()  # backward in scaled float16
    scaler.unscale_(optimizer)  # unscale gradients for clipping
    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
    scaler.step(optimizer)  # step only if no inf/nan
    scaler.update()  # adjust scale factor
print(outputs.dtype, scaler.get_scale(), f"loss={loss.item():.4f}")
