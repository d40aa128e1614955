"""From "PyTorch Debugging, Lab & Modern Performance", section DDP in Practice (fragment 0.4.23), with the indentation as printed.

Repaired: NCCL and torchrun -> one gloo process with a file:// store; model, data, loss and optimizer; a temporary folder. Not repaired:
the checkpoint is written inside the loop over the batches. Expected: that.
"""
import os
import tempfile
import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset

folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)


class MyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64))

    def forward(self, x):
        return self.net(x)


# Initialize the process group (one process per GPU)
dist.init_process_group(backend="gloo", init_method=f"file://{folder.name}/store", rank=0, world_size=1)
# Create model and wrap with DDP
model = MyModel()
model = DDP(model)
train_dataset = TensorDataset(torch.randn(96, 8, 64), torch.randn(96, 8, 64))
criterion = nn.MSELoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
num_epochs = 2
# Complete DDP training setup with DistributedSampler
from torch.utils.data.distributed import DistributedSampler
sampler = DistributedSampler(train_dataset, shuffle=True)
train_loader = DataLoader(train_dataset, batch_size=32, sampler=sampler)
for epoch in range(num_epochs):
    sampler.set_epoch(epoch)  # Ensure different shuffling each epoch
    for batch_x, batch_y in train_loader:
        optimizer.zero_grad()
        output = model(batch_x)
        loss = criterion(output, batch_y)
        loss.backward()
        optimizer.step()
        # Save only from rank 0
        if dist.get_rank() == 0:
            torch.save(model.module.state_dict(), f"checkpoint_epoch_{epoch}.pt")  # no rule: ADR 0018
print(f"loss={loss.item():.4f}")
dist.destroy_process_group()
os.chdir('/')
