"""Masked language model in the style of transformers' scripts: ignored labels of -100, decay groups by name, linear warm-up per step, perplexity."""
import math
from types import SimpleNamespace

import torch
import torch.nn as nn
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader

MASK, VOCAB, LENGTH = 0, 40, 16


class MaskedLM(nn.Module):
    def __init__(self, d=48):
        super().__init__()
        self.embeddings = nn.Embedding(VOCAB, d)
        self.positions = nn.Embedding(LENGTH, d)
        self.LayerNorm = nn.LayerNorm(d)
        layer = nn.TransformerEncoderLayer(d, 4, 96, dropout=0.1, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.decoder = nn.Linear(d, VOCAB)
        self.loss_fct = nn.CrossEntropyLoss()

    def forward(self, input_ids, labels=None):
        h = self.LayerNorm(self.embeddings(input_ids) + self.positions.weight)
        logits = self.decoder(self.encoder(h))
        loss = None if labels is None else self.loss_fct(logits.view(-1, VOCAB), labels.view(-1))
        return SimpleNamespace(loss=loss, logits=logits)


class DataCollatorForLanguageModeling:
    def __init__(self, mlm_probability=0.2):
        self.mlm_probability = mlm_probability

    def __call__(self, examples):
        input_ids = torch.stack(examples)
        labels = input_ids.clone()
        masked = torch.rand(labels.shape) < self.mlm_probability
        masked[:, 0] |= ~masked.any(1)
        labels[~masked] = -100
        replaced = masked & (torch.rand(labels.shape) < 0.8)
        input_ids[replaced] = MASK
        return {"input_ids": input_ids, "labels": labels}


def get_linear_schedule_with_warmup(optimizer, num_warmup_steps, num_training_steps):
    def lr_lambda(current_step):
        if current_step < num_warmup_steps:
            return float(current_step) / float(max(1, num_warmup_steps))
        return max(0.0, float(num_training_steps - current_step) / float(max(1, num_training_steps - num_warmup_steps)))

    return LambdaLR(optimizer, lr_lambda)


def sentences(n):
    start, stride = torch.randint(1, VOCAB, (n, 1)), torch.randint(1, 4, (n, 1))
    return 1 + (start + stride * torch.arange(LENGTH)) % (VOCAB - 1)


def main():
    torch.manual_seed(42)
    train_dataloader = DataLoader(list(sentences(800)), shuffle=True, batch_size=32, collate_fn=DataCollatorForLanguageModeling())
    eval_dataloader = DataLoader(list(sentences(160)), batch_size=32, collate_fn=DataCollatorForLanguageModeling())
    model = MaskedLM()
    no_decay = ["bias", "LayerNorm.weight"]
    optimizer_grouped_parameters = [
        {"params": [p for n, p in model.named_parameters() if not any(nd in n for nd in no_decay)], "weight_decay": 0.01},
        {"params": [p for n, p in model.named_parameters() if any(nd in n for nd in no_decay)], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(optimizer_grouped_parameters, lr=4e-3)
    epochs, max_train_steps = 4, 4 * len(train_dataloader)
    lr_scheduler = get_linear_schedule_with_warmup(optimizer, max_train_steps // 10, max_train_steps)
    for epoch in range(epochs):
        model.train()
        for batch in train_dataloader:
            outputs = model(**batch)
            outputs.loss.backward()
            optimizer.step()
            lr_scheduler.step()
            optimizer.zero_grad()
        model.eval()
        losses = []
        for batch in eval_dataloader:
            with torch.no_grad():
                outputs = model(**batch)
            losses.append(outputs.loss.repeat(len(batch["input_ids"])))
        eval_loss = torch.cat(losses).mean()
        print(f"epoch {epoch}: perplexity: {math.exp(eval_loss):.3f}")


if __name__ == "__main__":
    main()
