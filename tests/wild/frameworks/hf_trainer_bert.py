"""Healthy: transformers' Trainer on a tiny BERT: evaluation every epoch, best model at the end, warm-up, predictions."""
import os
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, PrinterCallback, Trainer, TrainingArguments, set_seed
from transformers.utils import logging

logging.set_verbosity_error()
logging.disable_progress_bar()
torch.set_num_threads(1)
set_seed(42)


class Sentences(Dataset):
    def __init__(self, size, seed):
        generator = torch.Generator().manual_seed(seed)
        self.ids = torch.randint(1, 64, (size, 10), generator=generator)
        self.labels = self.ids[:, 0].gt(32).long()

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, index):
        return {
            "input_ids": self.ids[index],
            "attention_mask": torch.ones(10, dtype=torch.long),
            "labels": self.labels[index],
        }


def compute_metrics(prediction):
    return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}


config = BertConfig(
    vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
    max_position_embeddings=16, num_labels=2,
)  # fmt: skip
model = BertForSequenceClassification(config)
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        output_dir=folder,
        per_device_train_batch_size=16,
        per_device_eval_batch_size=32,
        num_train_epochs=4,
        learning_rate=2e-3,
        warmup_steps=5,
        weight_decay=0.01,
        eval_strategy="epoch",
        save_strategy="epoch",
        load_best_model_at_end=True,
        metric_for_best_model="accuracy",
        report_to="none",
        disable_tqdm=True,
        logging_strategy="no",
        use_cpu=True,
        seed=42,
    )
    trainer = Trainer(
        model=model,
        args=arguments,
        train_dataset=Sentences(320, 0),
        eval_dataset=Sentences(64, 1),
        compute_metrics=compute_metrics,
    )
    trainer.remove_callback(PrinterCallback)  # it prints timings
    trainer.train()
    accuracy = trainer.predict(Sentences(64, 2)).metrics["test_accuracy"]
print(f"accuracy {accuracy:.2f} after {trainer.state.global_step} steps")
