"""transformers' Trainer with a custom compute_loss: cross_entropy on probabilities."""
import os
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, PrinterCallback, Trainer, TrainingArguments
from transformers.utils import logging

logging.set_verbosity_error()
logging.disable_progress_bar()
torch.set_num_threads(1)
torch.manual_seed(0)


class Sentences(Dataset):
    def __init__(self):
        self.ids = torch.randint(1, 64, (192, 10))

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, index):
        return {"input_ids": self.ids[index], "labels": self.ids[index, 0].remainder(3)}


class OwnLoss(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        probabilities = outputs.logits.softmax(dim=-1)
        loss = torch.nn.functional.cross_entropy(probabilities, labels)  # error: softmax-before-cross-entropy
        return (loss, outputs) if return_outputs else loss


config = BertConfig(
    vocab_size=64, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64,
    max_position_embeddings=16, num_labels=3,
)  # fmt: skip
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        output_dir=folder, per_device_train_batch_size=16, num_train_epochs=2, report_to="none", disable_tqdm=True,
        save_strategy="no", logging_strategy="no", use_cpu=True,
    )  # fmt: skip
    trainer = OwnLoss(BertForSequenceClassification(config), arguments, train_dataset=Sentences())
    trainer.remove_callback(PrinterCallback)
    trainer.train()
print(f"done after {trainer.state.global_step} steps")
