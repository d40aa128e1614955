"""From "PyTorch Debugging, Lab & Modern Performance", section Mixed Precision Training with torch.amp (fragment 0.4.21), with the indentation as printed.

Repaired: model and data, CUDA -> CPU. Not repaired: the scaled backward pass, the step and the update stand inside autocast.
Expected: that.
"""
import torch
import torch.nn as nn
from torch.amp import autocast, GradScaler
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)


class MyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64))

    def forward(self, x):
        return self.net(x)


train_loader = DataLoader(TensorDataset(torch.randn(96, 8, 64), torch.randn(96, 8, 64)), batch_size=16, shuffle=True)
criterion = nn.MSELoss()
num_epochs = 3

model = MyModel()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
scaler = GradScaler("cpu")  # Only needed for FP16; skip for BF16

for epoch in range(num_epochs):
    for batch_x, batch_y in train_loader:
        optimizer.zero_grad()

        # Forward pass in mixed precision
        with autocast(device_type="cpu", dtype=torch.float16):
            output = model(batch_x)
            loss = criterion(output, batch_y)

            # Backward pass with gradient scaling
            scaler.scale(loss).backward()  # no rule: ADR 0015
            scaler.step(optimizer)
            scaler.update()

            # For BF16 (preferred on Ampere+ GPUs), simply use:
                # with autocast(device_type="cuda", dtype=torch.bfloat16):
                    # output = model(batch_x)
                    # loss = criterion(output, batch_y)
                    # loss.backward() # No scaler needed
                    # optimizer.step()
print(output.dtype, f"loss={loss.item():.4f}")
