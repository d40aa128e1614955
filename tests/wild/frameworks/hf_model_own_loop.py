"""Healthy: a transformers model in a hand-written loop: get_scheduler per step, parameter groups without decay, evaluation."""
import os

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from torch.utils.data import DataLoader, TensorDataset
from transformers import DistilBertConfig, DistilBertForTokenClassification, get_scheduler
from transformers.utils import logging

logging.set_verbosity_error()
torch.manual_seed(0)
torch.set_num_threads(1)
ids = torch.randint(1, 40, (256, 8))
labels = ids.remainder(3)
config = DistilBertConfig(vocab_size=40, dim=32, hidden_dim=64, n_layers=2, n_heads=2, max_position_embeddings=8, num_labels=3)
model = DistilBertForTokenClassification(config)
no_decay = ("bias", "LayerNorm.weight")
groups = [
    {"params": [p for n, p in model.named_parameters() if not n.endswith(no_decay)], "weight_decay": 0.01},
    {"params": [p for n, p in model.named_parameters() if n.endswith(no_decay)], "weight_decay": 0.0},
]
optimizer = torch.optim.AdamW(groups, lr=2e-3)
train = DataLoader(TensorDataset(ids[:192], labels[:192]), batch_size=16, shuffle=True)
valid = DataLoader(TensorDataset(ids[192:], labels[192:]), batch_size=32)
epochs = 4
schedule = get_scheduler("linear", optimizer, num_warmup_steps=4, num_training_steps=epochs * len(train))
for _ in range(epochs):
    model.train()
    for input_ids, target in train:
        outputs = model(input_ids=input_ids, labels=target)
        outputs.loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
    model.eval()
    hits = 0
    with torch.no_grad():
        for input_ids, target in valid:
            hits += int((model(input_ids=input_ids).logits.argmax(-1) == target).sum())
print(f"accuracy {hits / labels[192:].numel():.2f}")
