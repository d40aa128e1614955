"""Healthy: the shortest Accelerate loop: prepare, zero_grad first, backward, a schedule per epoch, unwrap at the end."""
import torch
import torch.nn.functional as F
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
accelerator = Accelerator(cpu=True, mixed_precision="bf16")
x = torch.randn(256, 8)
y = x @ torch.randn(8, 1) + 0.1 * torch.randn(256, 1)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.05), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=4, gamma=0.5)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)

for epoch in range(10):
    model.train()
    for inputs, targets in loader:
        optimizer.zero_grad()
        output = model(inputs)
        loss = F.mse_loss(output, targets)
        accelerator.backward(loss)
        optimizer.step()
    schedule.step()

unwrapped = accelerator.unwrap_model(model)
unwrapped.eval()
with torch.inference_mode():
    print(f"loss {F.mse_loss(unwrapped(x).float(), y):.3f}")
