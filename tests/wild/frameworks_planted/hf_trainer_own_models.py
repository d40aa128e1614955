"""transformers' Trainer with custom models: a plain list, a sigmoid before the logits loss, a target that broadcasts, a forgotten head."""
import os
import tempfile
import warnings

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import Dataset
from transformers import PrinterCallback, Trainer, TrainingArguments
from transformers.utils import logging

warnings.filterwarnings("ignore")
logging.set_verbosity_error()
logging.disable_progress_bar()
torch.set_num_threads(1)
torch.manual_seed(0)
x = torch.randn(256, 6)


class Rows(Dataset):
    def __init__(self, labels):
        self.labels = labels

    def __len__(self):
        return len(x)

    def __getitem__(self, index):
        return {"inputs": x[index], "labels": self.labels[index]}


class Listed(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.head = nn.Linear(6, 16), nn.Linear(16, 3)
        self.blocks = [nn.Linear(16, 16), nn.Linear(16, 16)]

    def forward(self, inputs, labels=None):
        h = self.stem(inputs)
        for block in self.blocks:
            h = h + block(h).relu()  # error: layers-in-plain-container
        logits = self.head(h)
        return {"loss": F.cross_entropy(logits, labels), "logits": logits}


class Tags(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2), nn.Sigmoid())
        self.criterion = nn.BCEWithLogitsLoss()

    def forward(self, inputs, labels=None):
        scores = self.net(inputs)
        return {"loss": self.criterion(scores, labels), "logits": scores}  # error: sigmoid-before-bce-with-logits


class Value(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.middle, self.head = nn.Linear(6, 16), nn.Linear(16, 16), nn.Linear(16, 1)

    def forward(self, inputs, labels=None):
        value = self.head(self.middle(self.body(inputs).relu()).relu())
        return {"loss": F.mse_loss(value, labels), "logits": value}  # error: broadcast-target


def train(model, labels, optimizers=(None, None)):
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder, per_device_train_batch_size=16, num_train_epochs=2, report_to="none", disable_tqdm=True,
            save_strategy="no", logging_strategy="no", use_cpu=True,
        )  # fmt: skip
        trainer = Trainer(model, arguments, train_dataset=Rows(labels), optimizers=optimizers)
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    print(f"done after {trainer.state.global_step} steps")


train(Listed(), x[:, :3].argmax(1))
train(Tags(), x[:, :2].gt(0).float())
train(Value(), x.sum(1))
forgotten = Value()
optimizer = torch.optim.AdamW([*forgotten.body.parameters(), *forgotten.head.parameters()], lr=1e-3)  # error: parameters-not-optimized
train(forgotten, x.sum(1, keepdim=True), (optimizer, torch.optim.lr_scheduler.ConstantLR(optimizer, factor=1.0)))
