"""A transformers model in a hand-written loop that never clears the gradients."""
import os

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from torch.utils.data import DataLoader, TensorDataset
from transformers import GPT2Config, GPT2LMHeadModel, get_scheduler
from transformers.utils import logging

logging.set_verbosity_error()
torch.manual_seed(0)
torch.set_num_threads(1)
ids = (torch.randint(0, 16, (192, 1)) + torch.arange(8)) % 16
model = GPT2LMHeadModel(GPT2Config(vocab_size=16, n_positions=8, n_embd=16, n_layer=1, n_head=2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
loader = DataLoader(TensorDataset(ids), batch_size=16, shuffle=True)
schedule = get_scheduler("linear", optimizer, num_warmup_steps=2, num_training_steps=2 * len(loader))
model.train()
for _ in range(2):
    for (batch,) in loader:
        loss = model(input_ids=batch, labels=batch).loss
        loss.backward()
        optimizer.step()  # error: missing-zero-grad
        schedule.step()
print(f"loss {loss.item():.2f}")
