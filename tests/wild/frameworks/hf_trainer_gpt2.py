"""Healthy: transformers' Trainer on a tiny GPT-2: tied weights, accumulation, gradient checkpointing, evaluation by steps."""
import os
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, PrinterCallback, Trainer, TrainingArguments, set_seed
from transformers.utils import logging

logging.set_verbosity_error()
logging.disable_progress_bar()
torch.set_num_threads(1)
set_seed(0)


class Counting(Dataset):
    """Sequences that count upwards modulo 16 from a random start."""

    def __init__(self, size, seed):
        start = torch.randint(0, 16, (size, 1), generator=torch.Generator().manual_seed(seed))
        self.ids = (start + torch.arange(12)) % 16

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, index):
        return {"input_ids": self.ids[index], "labels": self.ids[index]}


config = GPT2Config(
    vocab_size=16, n_positions=16, n_embd=32, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0, use_cache=False
)
model = GPT2LMHeadModel(config)
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        output_dir=folder,
        per_device_train_batch_size=4,
        gradient_accumulation_steps=4,
        gradient_checkpointing=True,
        max_steps=40,
        learning_rate=5e-3,
        lr_scheduler_type="cosine",
        warmup_steps=4,
        eval_strategy="steps",
        eval_steps=10,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        logging_strategy="no",
        use_cpu=True,
    )
    trainer = Trainer(model=model, args=arguments, train_dataset=Counting(200, 0), eval_dataset=Counting(32, 1))
    trainer.remove_callback(PrinterCallback)  # it prints timings
    trainer.train()
    loss = trainer.evaluate()["eval_loss"]
model.eval()
with torch.no_grad():
    generated = model.generate(torch.tensor([[3, 4, 5]]), max_new_tokens=5, do_sample=False, pad_token_id=0)
print(f"loss {loss:.2f} {generated.tolist()[0]}")
