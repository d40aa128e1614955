"""From "PyTorch Debugging, Lab & Modern Performance", section Profiling with torch.profiler (fragment 0.4.15).

Repaired: model, loss and random images. Not repaired: the table stands behind `break` and is never printed. Expected: nothing: five
backward passes add up, but no optimizer exists.
"""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(784, 128)
        self.relu = nn.ReLU()
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x):
        return self.fc2(self.relu(self.fc1(x)))


model = Net()
criterion = nn.CrossEntropyLoss()
train_loader = DataLoader(TensorDataset(torch.randn(640, 1, 28, 28), torch.randint(0, 10, (640,))), batch_size=64)

# Profile a few training batches with torch.profiler
from torch.profiler import profile, ProfilerActivity

# Profile execution to find performance bottlenecks
with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as prof:
    for i, (images, labels) in enumerate(train_loader):
        images = images.view(images.size(0), -1)
        outputs = model(images)
        loss = criterion(outputs, labels)
        # Compute gradients via backpropagation
        loss.backward()
        if i >= 4:
            break

            print(prof.key_averages().table(sort_by="cpu_time_total", row_limit=5))
