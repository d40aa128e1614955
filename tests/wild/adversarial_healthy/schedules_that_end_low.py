"""Three optimizers: a line to zero over all batches with a short tail, one switched off half-way, one cooled."""
import torch
from torch import nn
from torch.optim.lr_scheduler import ChainedScheduler, CosineAnnealingLR, ConstantLR, ExponentialLR, LambdaLR
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(160, 6)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8, shuffle=True)
epochs, total = 6, 6 * len(loader)
body, neck, head = nn.Linear(6, 12), nn.Linear(12, 12), nn.Linear(12, 1)
first, second, third = (torch.optim.SGD(part.parameters(), lr=0.01) for part in (body, neck, head))
line = LambdaLR(first, lambda step: max(0.0, 1 - step / (total - 15)))
switch = LambdaLR(second, lambda step: 1.0 if step < total // 2 else 0.0)
waves = ChainedScheduler([ConstantLR(third, 0.5, 2), CosineAnnealingLR(third, epochs)], optimizer=third)
for epoch in range(epochs):
    for inputs, target in loader:
        for optimizer in (first, second, third):
            optimizer.zero_grad()
        loss = nn.functional.mse_loss(head(torch.tanh(neck(torch.tanh(body(inputs))))), target)
        loss.backward()
        for optimizer in (first, second, third):
            optimizer.step()
        line.step()
        switch.step()
    waves.step()
    print(epoch, loss.item())
cooled = torch.optim.SGD(head.parameters(), lr=0.01)
cooling = ExponentialLR(cooled, 0.2)
for epoch in range(12):
    for inputs, target in loader:
        cooled.zero_grad()
        nn.functional.mse_loss(head(torch.tanh(neck(torch.tanh(body(inputs))))), target).backward()
        cooled.step()
    cooling.step()
