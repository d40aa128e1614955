"""Everything that is watched, copied, pickled, saved and shared, before and after it was used."""

import copy
import io
import pickle

import torch
from _state import digest, tell
from torch import nn
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.dataloader import _BaseDataLoaderIter


def halved(step):
    return 0.5**step


class Watched(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.drop, self.head = nn.Linear(4, 8), nn.Dropout(0.1), nn.Linear(8, 3)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        return self.head(self.drop(torch.tanh(self.body(x))))


torch.manual_seed(5)
model, average = Watched(), torch.optim.swa_utils.AveragedModel(Watched())
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
schedules = [lr_scheduler.LambdaLR(optimizer, halved), lr_scheduler.StepLR(optimizer, 3)]
schedules = [*schedules, lr_scheduler.SequentialLR(optimizer, schedules, [4])]
plateau = lr_scheduler.ReduceLROnPlateau(optimizer)
scaler = torch.amp.GradScaler("cpu", enabled=True)
data = TensorDataset(torch.randn(24, 4), torch.randint(0, 3, (24,)))
loader = DataLoader(data, 4, shuffle=True, generator=torch.Generator().manual_seed(1))


def epoch(model, optimizer, criterion, loader, schedules, plateau, scaler):
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        schedules[-1].step()
    plateau.step(loss.detach())
    print(repr(loss.item()))


def tell_size(thing):
    """Print the names in a copy, and its size."""
    for make in (pickle.dumps, saved):
        try:
            print(type(thing).__name__, len(make(thing)))
        except Exception as error:
            print(type(thing).__name__, type(error).__name__, error)
    own = getattr(thing, "__dict__", {})
    own = {} if isinstance(thing, _BaseDataLoaderIter) else own
    print(sorted(own), [sorted(vars(p)) for p in thing.parameters()] if isinstance(thing, nn.Module) else "")


def saved(thing):
    buffer = io.BytesIO()
    torch.save(thing, buffer)
    return buffer.getvalue()


for round_ in range(3):
    things = (model, optimizer, criterion, loader, schedules, plateau, scaler)
    for thing in (*things, average, iter(loader), data, *model.parameters(), *(p.grad for p in model.parameters())):
        tell_size(thing)
    epoch(*things)
    average.update_parameters(model)
    epoch(*copy.deepcopy(things))
    epoch(*pickle.loads(pickle.dumps(things)))
    epoch(*torch.load(io.BytesIO(saved(things)), weights_only=False))
    model.share_memory()
    print([p.is_shared() for p in model.parameters()], digest([copy.copy(p) for p in model.parameters()]))
    model = copy.deepcopy(model) if round_ == 1 else model
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2) if round_ == 1 else optimizer
tell(model, optimizer, average, *(schedules if round_ else ()), scaler)
