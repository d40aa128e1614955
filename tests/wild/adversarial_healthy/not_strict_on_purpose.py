"""strict=False on purpose: a backbone without its head, adapters, parts of one file, shards, and names that were tried."""
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)


class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16))
        self.head = nn.Linear(16, classes)

    def forward(self, x):
        return self.head(self.backbone(x).relu())


pretrained = Net(10).state_dict()
model = Net(3)
model.load_state_dict({k: v for k, v in pretrained.items() if not k.startswith("head.")}, strict=False)
adapter = {"head.weight": torch.zeros(3, 16), "head.bias": torch.zeros(3)}
model.load_state_dict(adapter, strict=False)

# a file of an encoder only, given to every part of an autoencoder
encoder, decoder = nn.Sequential(), nn.Sequential()
encoder.add_module("enc", nn.Linear(8, 4))
decoder.add_module("dec", nn.Linear(4, 8))
file = nn.Sequential()
file.add_module("enc", nn.Linear(8, 4))
for part in (decoder, encoder):
    part.load_state_dict(file.state_dict(), strict=False)

# shards of a large file: some hold nothing of this stage
stage = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
shards = [{"9.weight": torch.ones(3, 3)}, {"0.weight": torch.eye(3)}, {"0.bias": torch.ones(3), **nn.Sequential(
    nn.Identity(), nn.Linear(3, 3)).state_dict()}]
for shard in shards:
    stage.load_state_dict(shard, strict=False)

# names as they may be: the result is looked at, or the next try fits
wrapped = {f"module.{k}": v for k, v in Net(3).state_dict().items()}
copied = Net(3)
if copied.load_state_dict(wrapped, strict=False).missing_keys:
    copied.load_state_dict({k.removeprefix("module."): v for k, v in wrapped.items()})
tried = Net(3)
tried.load_state_dict(wrapped, strict=False)
tried.load_state_dict({k.removeprefix("module."): v for k, v in wrapped.items()}, strict=False)
empty = Net(3)
empty.load_state_dict({}, strict=False)

optimizer = torch.optim.Adam([p for net in (model, encoder, decoder, stage, copied, tried, empty) for p in net.parameters()])
for step in range(30):
    x, y = torch.randn(16, 8), torch.randint(0, 3, (16,))
    optimizer.zero_grad()
    loss = sum(nn.functional.cross_entropy(net(x), y) for net in (model, copied, tried, empty))
    loss = loss + (decoder(encoder(x)) - x).pow(2).mean() + stage[1](torch.relu(stage[0](x[:, :3]))).pow(2).mean()
    loss.backward()
    optimizer.step()
print(loss.item())
