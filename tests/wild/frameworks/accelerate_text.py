"""Healthy: Accelerate as in its examples: accumulate, clip when gradients are in sync, a warm-up per step, gather_for_metrics."""
import tempfile

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)


class Reviews(Dataset):
    def __init__(self, size, seed):
        generator = torch.Generator().manual_seed(seed)
        self.tokens = torch.randint(1, 50, (size, 12), generator=generator)
        self.labels = (self.tokens < 10).sum(1).gt(2).long()

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return {"input_ids": self.tokens[index], "labels": self.labels[index]}


class TextClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 16, padding_idx=0)
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1)
        self.head = nn.Linear(16, 2)

    def forward(self, input_ids, labels=None):
        logits = self.head(self.encoder(self.embed(input_ids)).mean(1))
        loss = None if labels is None else nn.functional.cross_entropy(logits, labels)
        return {"loss": loss, "logits": logits}


def main():
    set_seed(42)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=4)
    train = DataLoader(Reviews(520, 0), batch_size=8, shuffle=True)
    evaluation = DataLoader(Reviews(100, 1), batch_size=32)
    model = TextClassifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    epochs = 3
    updates = epochs * -(-len(train) // 4)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, (step + 1) / 5) * max(0.0, 1 - step / updates)
    )
    model, optimizer, train, evaluation, schedule = accelerator.prepare(model, optimizer, train, evaluation, schedule)
    for _ in range(epochs):
        model.train()
        total_loss = 0.0
        for batch in train:
            with accelerator.accumulate(model):
                loss = model(**batch)["loss"]
                total_loss += loss.detach().float()
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
        model.eval()
        hits = count = 0
        for batch in evaluation:
            with torch.no_grad():
                outputs = model(**batch)
            predictions = outputs["logits"].argmax(dim=-1)
            predictions, references = accelerator.gather_for_metrics((predictions, batch["labels"]))
            hits += int((predictions == references).sum())
            count += len(references)
    with tempfile.TemporaryDirectory() as folder:
        accelerator.save_state(folder)
        accelerator.load_state(folder)
    accelerator.print(f"accuracy {hits / count:.2f}, loss {float(total_loss) / len(train):.2f}")
    accelerator.end_training()


if __name__ == "__main__":
    main()
