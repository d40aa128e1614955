"""One loss is differentiated twice, each time for other parameters, or with gradients cleared between."""
import torch
from torch import nn

torch.manual_seed(0)
encoder, decoder = nn.Sequential(nn.Linear(8, 4), nn.Tanh()), nn.Linear(4, 8)
optimizers = [torch.optim.SGD(net.parameters(), lr=0.1) for net in (encoder, decoder)]
x = torch.randn(128, 8) @ torch.randn(8, 8) * 0.3
norms = []
for step in range(80):
    rows = torch.randint(0, 128, (32,))
    loss = (decoder(encoder(x[rows])) - x[rows]).square().mean()
    for optimizer in optimizers:
        optimizer.zero_grad()
    loss.backward(inputs=list(encoder.parameters()), retain_graph=True)
    loss.backward(inputs=list(decoder.parameters()))
    for optimizer in optimizers:
        optimizer.step()

    loss = (decoder(encoder(x[rows] + 0.1 * torch.randn(32, 8))) - x[rows]).square().mean()
    loss.backward(retain_graph=True)
    norms.append(sum(p.grad.norm().item() for p in encoder.parameters()))
    encoder.zero_grad()
    decoder.zero_grad()
    loss.backward()
    for optimizer in optimizers:
        optimizer.step()
print(f"loss {loss.item():.4f}, norm {norms[-1]:.4f}")
