"""Classify sequences by a small transformer with linear warmup and decay."""

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

VOCAB, LENGTH, CLASSES = 12, 10, 4
WARMUP, TOTAL, BASE_LR = 30, 240, 5e-3


def make_data(n, seed):
    """The class is the group of the third token, or of the fourth one where the first is small."""
    gen = torch.Generator().manual_seed(seed)
    tokens = torch.randint(1, VOCAB, (n, LENGTH), generator=gen)
    chosen = torch.where(tokens[:, 0] < 4, tokens[:, 3], tokens[:, 2])
    return tokens, chosen % CLASSES


class SmallTransformer(nn.Module):
    """Embedding with positions, two encoder layers, mean pooling."""

    def __init__(self, dim=32):
        super().__init__()
        self.token = nn.Embedding(VOCAB, dim)
        self.position = nn.Parameter(0.3 * torch.randn(LENGTH, dim))
        layer = nn.TransformerEncoderLayer(dim, 4, 64, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(dim, CLASSES)

    def forward(self, tokens):
        h = self.encoder(self.token(tokens) + self.position)
        return self.out(h.mean(dim=1))


def lr_factor(step):
    if step < WARMUP:
        return (step + 1) / WARMUP
    return max(0.0, (TOTAL - step) / (TOTAL - WARMUP))


class Trainer:
    """Steps through random batches."""

    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=BASE_LR, weight_decay=0.01)
        self.scheduler = LambdaLR(self.optimizer, lr_lambda=lr_factor)

    def step(self, tokens, label):
        self.model.train()
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.model(tokens), label)
        loss.backward()
        self.optimizer.step()
        self.scheduler.step()
        return loss.item()

    def accuracy(self, tokens, label):
        self.model.eval()
        with torch.no_grad():
            return (self.model(tokens).argmax(1) == label).float().mean().item()


torch.manual_seed(26)
tokens, label = make_data(3000, 1)
val_tokens, val_label = make_data(600, 2)
trainer = Trainer(SmallTransformer())
recent = []
for step in range(1, TOTAL + 1):
    batch = torch.randint(0, len(tokens), (64,))
    recent.append(trainer.step(tokens[batch], label[batch]))
    if step % 60 == 0:
        lr = trainer.scheduler.get_last_lr()[0]
        print(f"step {step} loss {sum(recent[-60:]) / 60:.4f} lr {lr:.2e}")
print(f"validation accuracy {trainer.accuracy(val_tokens, val_label):.4f}")
