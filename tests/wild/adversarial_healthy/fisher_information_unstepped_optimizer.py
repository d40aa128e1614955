"""A pretrained network is only measured: diagonal Fisher information, with an optimizer that a later script uses."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
loader = DataLoader(TensorDataset(torch.randn(40, 4)), batch_size=1)
fisher = {n: torch.zeros_like(p) for n, p in net.named_parameters()}
for (x,) in loader:
    net.zero_grad()
    log_p = torch.log_softmax(net(x), 1)
    label = torch.distributions.Categorical(logits=log_p).sample()
    torch.nn.functional.nll_loss(log_p, label).backward()
    for n, p in net.named_parameters():
        fisher[n] += p.grad.detach() ** 2 / len(loader)
print({n: f.mean().item() for n, f in fisher.items()})
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict(), "fisher": fisher}, "/dev/null")
