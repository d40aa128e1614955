"""Sentiment of film reviews with a small Transformer encoder: configuration, tokenizer, collator, model, training."""

import math
import os
import random
import re
from collections import Counter
from dataclasses import dataclass
from typing import Optional

import numpy as np
import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader


@dataclass
class SentimentConfig:
    vocab_size: int = 2000
    hidden_size: int = 48
    num_layers: int = 2
    num_heads: int = 4
    max_length: int = 24
    dropout: float = 0.2
    num_labels: int = 2
    pad_token_id: int = 0
    unk_token_id: int = 1
    cls_token_id: int = 2


@dataclass
class SequenceClassifierOutput:
    loss: Optional[torch.Tensor]
    logits: torch.Tensor


class Tokenizer:
    def __init__(self, config, texts):
        self.config = config
        counts = Counter(word for text in texts for word in self.split(text))
        specials = ["[PAD]", "[UNK]", "[CLS]"]
        words = specials + [word for word, _ in counts.most_common(config.vocab_size - len(specials))]
        self.vocab = {word: index for index, word in enumerate(words)}

    def split(self, text):
        return re.findall(r"[a-z']+", text.lower())

    def __call__(self, text):
        ids = [self.vocab.get(word, self.config.unk_token_id) for word in self.split(text)]
        return [self.config.cls_token_id] + ids[: self.config.max_length - 1]


class DataCollatorWithPadding:
    def __init__(self, tokenizer):
        self.tokenizer = tokenizer

    def __call__(self, examples):
        encoded = [self.tokenizer(text) for text, _ in examples]
        longest = max(len(ids) for ids in encoded)
        pad = self.tokenizer.config.pad_token_id
        return {
            "input_ids": torch.tensor([ids + [pad] * (longest - len(ids)) for ids in encoded]),
            "attention_mask": torch.tensor([[1] * len(ids) + [0] * (longest - len(ids)) for ids in encoded]),
            "labels": torch.tensor([label for _, label in examples]),
        }


class EncoderLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.num_heads = config.num_heads
        self.qkv = nn.Linear(config.hidden_size, 3 * config.hidden_size)
        self.proj = nn.Linear(config.hidden_size, config.hidden_size)
        self.LayerNorm1 = nn.LayerNorm(config.hidden_size)
        self.LayerNorm2 = nn.LayerNorm(config.hidden_size)
        self.mlp = nn.Sequential(
            nn.Linear(config.hidden_size, 2 * config.hidden_size), nn.GELU(), nn.Linear(2 * config.hidden_size, config.hidden_size)
        )
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x, attention_mask):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.LayerNorm1(x)).view(batch, length, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        scores = scores.masked_fill(attention_mask[:, None, None, :] == 0, -1e9)
        context = (scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(batch, length, width)
        x = x + self.dropout(self.proj(context))
        return x + self.dropout(self.mlp(self.LayerNorm2(x)))


class SentimentModel(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.word_embeddings = nn.Embedding(config.vocab_size, config.hidden_size, padding_idx=config.pad_token_id)
        self.position_embeddings = nn.Embedding(config.max_length, config.hidden_size)
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.num_layers))
        self.LayerNorm = nn.LayerNorm(config.hidden_size)
        self.dropout = nn.Dropout(config.dropout)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
        self.apply(self._init_weights)

    def _init_weights(self, module):
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=0.05)
            nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=0.05)
            if module.padding_idx is not None:
                nn.init.zeros_(module.weight[module.padding_idx])

    def forward(self, input_ids, attention_mask, labels=None):
        positions = torch.arange(input_ids.shape[1])
        x = self.dropout(self.word_embeddings(input_ids) + self.position_embeddings(positions))
        for layer in self.layers:
            x = layer(x, attention_mask)
        x = self.LayerNorm(x)
        mask = attention_mask.unsqueeze(-1).float()
        pooled = (x * mask).sum(dim=1) / mask.sum(dim=1)
        logits = self.classifier(self.dropout(pooled))
        loss = nn.functional.cross_entropy(logits, labels) if labels is not None else None
        return SequenceClassifierOutput(loss=loss, logits=logits)


def get_linear_schedule_with_warmup(optimizer, num_warmup_steps, num_training_steps):
    def scale(step):
        if step < num_warmup_steps:
            return (step + 1) / num_warmup_steps
        return max(0.0, (num_training_steps - step) / max(1, num_training_steps - num_warmup_steps))

    return LambdaLR(optimizer, scale)


def compute_metrics(logits, labels):
    predictions = np.argmax(logits, axis=-1)
    tp = ((predictions == 1) & (labels == 1)).sum()
    precision = tp / max(1, (predictions == 1).sum())
    recall = tp / max(1, (labels == 1).sum())
    f1 = 2 * precision * recall / max(1e-9, precision + recall)
    return {"accuracy": float((predictions == labels).mean()), "f1": float(f1)}


def evaluate(model, dataloader):
    model.eval()
    all_logits, all_labels, losses = [], [], []
    for batch in dataloader:
        with torch.no_grad():
            outputs = model(**batch)
        all_logits.append(outputs.logits.numpy())
        all_labels.append(batch["labels"].numpy())
        losses.append(outputs.loss.item() * len(batch["labels"]))
    labels = np.concatenate(all_labels)
    metrics = compute_metrics(np.concatenate(all_logits), labels)
    return {"eval_loss": sum(losses) / len(labels), **metrics}


def load_examples(n_train, n_eval):
    root = os.path.join(os.environ.get("TRUESTEP_DATA", "data"), "rt-polarity")
    examples = []
    for label, name in enumerate(["neg", "pos"]):
        with open(f"{root}/rt-polarity.{name}", encoding="latin-1") as file:
            examples += [(line.strip(), label) for line in file]
    random.Random(0).shuffle(examples)
    return examples[:n_train], examples[n_train : n_train + n_eval]


def main():
    torch.manual_seed(42)
    train_examples, eval_examples = load_examples(2600, 800)
    config = SentimentConfig()
    tokenizer = Tokenizer(config, [text for text, _ in train_examples])
    collator = DataCollatorWithPadding(tokenizer)
    train_dataloader = DataLoader(train_examples, batch_size=64, shuffle=True, collate_fn=collator)
    eval_dataloader = DataLoader(eval_examples, batch_size=300, collate_fn=collator)

    model = SentimentModel(config)
    no_decay = ["bias", "LayerNorm"]
    grouped_parameters = [
        {"params": [p for n, p in model.named_parameters() if not any(nd in n for nd in no_decay)], "weight_decay": 0.1},
        {"params": [p for n, p in model.named_parameters() if any(nd in n for nd in no_decay)], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(grouped_parameters, lr=2e-3)
    num_epochs = 3
    num_training_steps = num_epochs * len(train_dataloader)
    lr_scheduler = get_linear_schedule_with_warmup(optimizer, num_training_steps // 10, num_training_steps)

    for epoch in range(num_epochs):
        model.train()
        train_loss = 0.0
        for batch in train_dataloader:
            outputs = model(**batch)
            outputs.loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            lr_scheduler.step()
            optimizer.zero_grad()
            train_loss += outputs.loss.item()
        metrics = evaluate(model, eval_dataloader)
        rounded = {name: round(value, 4) for name, value in metrics.items()}
        print({"epoch": epoch + 1, "train_loss": round(train_loss / len(train_dataloader), 4), **rounded})


if __name__ == "__main__":
    main()
