"""Healthy: Ignite with create_supervised_trainer, an evaluator per epoch, metrics, a schedule per iteration, early stopping."""
import tempfile

import torch
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.handlers import Checkpoint, DiskSaver, EarlyStopping, TerminateOnNan
from ignite.handlers.param_scheduler import LRScheduler
from ignite.metrics import Accuracy, Loss
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(480, 10)
y = (x[:, 0] + x[:, 1] * x[:, 2] > 0).long()
train = DataLoader(TensorDataset(x[:384], y[:384]), batch_size=32, shuffle=True)
valid = DataLoader(TensorDataset(x[384:], y[384:]), batch_size=48)
model = nn.Sequential(nn.Linear(10, 48), nn.BatchNorm1d(48), nn.ReLU(), nn.Dropout(0.1), nn.Linear(48, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
criterion = nn.CrossEntropyLoss()

trainer = create_supervised_trainer(model, optimizer, criterion, device="cpu")
evaluator = create_supervised_evaluator(model, metrics={"accuracy": Accuracy(), "nll": Loss(criterion)}, device="cpu")
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=6 * len(train))
trainer.add_event_handler(Events.ITERATION_STARTED, LRScheduler(schedule))
trainer.add_event_handler(Events.ITERATION_COMPLETED, TerminateOnNan())
evaluator.add_event_handler(
    Events.COMPLETED, EarlyStopping(patience=4, score_function=lambda e: -e.state.metrics["nll"], trainer=trainer)
)


@trainer.on(Events.EPOCH_COMPLETED)
def evaluate(engine):
    evaluator.run(valid)


with tempfile.TemporaryDirectory() as folder:
    saver = Checkpoint({"model": model, "optimizer": optimizer, "trainer": trainer}, DiskSaver(folder), n_saved=2)
    trainer.add_event_handler(Events.EPOCH_COMPLETED(every=2), saver)
    trainer.run(train, max_epochs=6)
print(f"accuracy {evaluator.state.metrics['accuracy']:.2f} after {trainer.state.iteration} iterations")
