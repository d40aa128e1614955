import torch
from _state import tell
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

torch.manual_seed(3)
forwards = 0


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.norm, self.drop = nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Dropout(0.3)

    def forward(self, x):
        global forwards
        forwards += 1
        return self.drop(torch.relu(self.norm(self.linear(x))))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(4))
        self.tail = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU())
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        for number, block in enumerate(self.blocks):
            x = checkpoint(block, x, use_reentrant=bool(number % 2))
        return self.head(checkpoint_sequential(self.tail, 2, x, use_reentrant=False))


def one_shot():
    store = {}

    def pack(tensor):
        store[len(store)] = tensor
        return len(store) - 1

    return torch.autograd.graph.saved_tensors_hooks(pack, store.pop)


model = Net()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range(25):
    optimizer.zero_grad()
    x, y = torch.randn(16, 8, requires_grad=True), torch.randint(0, 3, (16,))
    if step % 2:
        with one_shot():
            loss = nn.functional.cross_entropy(model.head(x), y)
    elif step % 3:
        with torch.autograd.graph.save_on_cpu():
            loss = nn.functional.cross_entropy(model.head(torch.relu(x)), y)
    else:
        loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    counts = [int(block.norm.num_batches_tracked) for block in model.blocks]
    print(step, repr(loss.item()), forwards, counts, repr(x.grad.sum().item()))
tell(model, optimizer)
