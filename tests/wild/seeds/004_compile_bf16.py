"""From "PyTorch Debugging, Lab & Modern Performance", section Combining torch.compile with Mixed Precision (fragment 0.4.20), with the indentation as printed.

Repaired: a small block and data, CUDA -> CPU, the backend "eager" with the mode dropped. Not repaired: the backward pass and the step stand
inside autocast, where they are printed. Expected: that.
"""
import torch
import torch.nn as nn
from torch.amp import autocast
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)


class MyTransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(d_model, n_heads, 2 * d_model, dropout=0.0, batch_first=True)

    def forward(self, x):
        return self.layer(x)


train_loader = DataLoader(TensorDataset(torch.randn(96, 8, 64), torch.randn(96, 8, 64)), batch_size=16, shuffle=True)
criterion = nn.MSELoss()

# Compile the model first
model = MyTransformerBlock(d_model=64, n_heads=8)
compiled_model = torch.compile(model, backend="eager", dynamic=True)

optimizer = torch.optim.AdamW(compiled_model.parameters(), lr=3e-4)

for batch_x, batch_y in train_loader:
    optimizer.zero_grad()

    # BF16 autocast inside the compiled model: the compiler fuses casts
    with autocast(device_type="cpu", dtype=torch.bfloat16):
        output = compiled_model(batch_x)
        loss = criterion(output, batch_y)

        loss.backward()  # no rule: ADR 0015
        optimizer.step()
print(f"loss={loss.item():.4f}")
