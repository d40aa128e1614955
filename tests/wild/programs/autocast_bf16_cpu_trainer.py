"""Mixed precision on the CPU: forward and loss under bfloat16 autocast, float32 weights, accumulation with a remainder, autocast evaluation."""
import contextlib
from dataclasses import dataclass

import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class TrainingArguments:
    learning_rate: float = 4e-3
    per_device_batch_size: int = 32
    gradient_accumulation_steps: int = 2
    num_epochs: int = 3
    bf16: bool = True
    seed: int = 42


class Trainer:
    def __init__(self, model, args, train_dataset, eval_dataset):
        self.model, self.args, self.eval_dataset = model, args, eval_dataset
        self.loader = DataLoader(train_dataset, args.per_device_batch_size, shuffle=True, drop_last=True)
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate)
        updates = -(-len(self.loader) // args.gradient_accumulation_steps) * args.num_epochs
        self.scheduler = torch.optim.lr_scheduler.LinearLR(self.optimizer, 1.0, 0.1, total_iters=updates)

    def autocast(self):
        return torch.autocast("cpu", dtype=torch.bfloat16) if self.args.bf16 else contextlib.nullcontext()

    def training_step(self, x, y, window):
        self.model.train()
        with self.autocast():
            loss = self.criterion(self.model(x), y)
        (loss / window).backward()
        return loss.detach()

    def train(self):
        accumulation, batches = self.args.gradient_accumulation_steps, len(self.loader)
        for epoch in range(self.args.num_epochs):
            total = torch.zeros(())
            for step, (x, y) in enumerate(self.loader, 1):
                window = accumulation if step <= batches - batches % accumulation else batches % accumulation
                total += self.training_step(x, y, window)
                if step % accumulation == 0 or step == batches:
                    nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                    self.optimizer.step()
                    self.scheduler.step()
                    self.optimizer.zero_grad()
            print({"epoch": epoch, "loss": round(total.item() / batches, 4), **self.evaluate()})

    def evaluate(self):
        self.model.eval()
        correct = 0
        with torch.inference_mode(), self.autocast():
            for x, y in DataLoader(self.eval_dataset, 128):
                correct += (self.model(x).argmax(-1) == y).sum().item()
        return {"accuracy": round(correct / len(self.eval_dataset), 4)}


args = TrainingArguments()
torch.manual_seed(args.seed)
bunch = load_digits()
x, y = torch.tensor(bunch.data, dtype=torch.float32) / 16, torch.tensor(bunch.target)
order = torch.randperm(len(x))
train, test = order[:1200], order[1200:]
model = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Dropout(0.1), nn.Linear(96, 10))
Trainer(model, args, TensorDataset(x[train], y[train]), TensorDataset(x[test], y[test])).train()
