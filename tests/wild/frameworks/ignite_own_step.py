"""Healthy: Ignite with an own update function that accumulates over four batches, a plateau schedule and an EMA of the weights."""
import torch
import torch.nn.functional as F
from ignite.engine import Engine, Events
from ignite.handlers import EMAHandler
from ignite.metrics import MeanSquaredError, RunningAverage
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(2)
torch.set_num_threads(1)
x = torch.randn(416, 5)
y = x.pow(2).sum(1, keepdim=True)
train = DataLoader(TensorDataset(x[:320], y[:320]), batch_size=16, shuffle=True)
valid = DataLoader(TensorDataset(x[320:], y[320:]), batch_size=32)
model = nn.Sequential(nn.Linear(5, 64), nn.ReLU(), nn.Dropout(0.02), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=2)
accumulate = 4


def update(engine, batch):
    model.train()
    inputs, targets = batch
    loss = F.mse_loss(model(inputs), targets) / accumulate
    loss.backward()
    if engine.state.iteration % accumulate == 0:
        optimizer.step()
        optimizer.zero_grad()
    return loss.item() * accumulate


def validate(engine, batch):
    model.eval()
    with torch.no_grad():
        inputs, targets = batch
        return model(inputs), targets


trainer, evaluator = Engine(update), Engine(validate)
RunningAverage(output_transform=lambda output: output).attach(trainer, "loss")
MeanSquaredError().attach(evaluator, "mse")
ema = EMAHandler(model, momentum=0.01)
ema.attach(trainer, event=Events.ITERATION_COMPLETED(every=accumulate))


@trainer.on(Events.EPOCH_COMPLETED)
def evaluate():
    evaluator.run(valid)
    schedule.step(evaluator.state.metrics["mse"])


trainer.run(train, max_epochs=12)
print(f"mse {evaluator.state.metrics['mse']:.2f}, running loss {trainer.state.metrics['loss']:.2f}")
