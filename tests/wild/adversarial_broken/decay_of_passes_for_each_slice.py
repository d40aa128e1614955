"""A factor that counts passes over the data gets the number of slices: the rate is 0 after two of twenty passes."""

import torch

torch.manual_seed(0)
features = torch.randn(640, 10)
wanted = features @ torch.randn(10, 1)
net = torch.nn.Linear(10, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
passes = 20
decay = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda done: max(0.0, 1 - done / passes))
for _ in range(passes):
    for at in range(0, 640, 64):
        optimizer.zero_grad()
        (net(features[at : at + 64]) - wanted[at : at + 64]).square().mean().backward()
        optimizer.step()
        decay.step()  # error: scheduler-wrong-cadence
