"""Text classification with averaged embeddings, linear warm-up and cosine decay."""
import math

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, Dataset


class TopicDataset(Dataset):
    """Documents of fixed length with words that come from a topic-dependent distribution."""

    def __init__(self, n_docs, topics, length, gen):
        self.labels = torch.randint(0, len(topics), (n_docs,), generator=gen)
        self.docs = torch.multinomial(topics[self.labels], length, replacement=True, generator=gen)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.docs[i], self.labels[i]


class EmbeddingClassifier(nn.Module):
    def __init__(self, vocab, n_classes, dim=32):
        super().__init__()
        self.bag = nn.EmbeddingBag(vocab, dim, mode="mean")
        self.mlp = nn.Sequential(nn.Dropout(0.3), nn.Linear(dim, 64), nn.ReLU(), nn.Linear(64, n_classes))

    def forward(self, docs):
        return self.mlp(self.bag(docs))


def warmup_cosine(optimizer, warmup_steps, total_steps):
    def factor(step):
        if step < warmup_steps:
            return (step + 1) / warmup_steps
        progress = (step - warmup_steps) / max(1, total_steps - warmup_steps)
        return 0.5 * (1.0 + math.cos(math.pi * progress))
    return LambdaLR(optimizer, factor)


class Trainer:
    def __init__(self, model, train_loader, val_loader, max_epochs=6, lr=2e-2, warmup_ratio=0.1):
        self.model = model
        self.train_loader = train_loader
        self.val_loader = val_loader
        self.max_epochs = max_epochs
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.01)
        total_steps = max_epochs * len(train_loader)
        self.scheduler = warmup_cosine(self.optimizer, int(warmup_ratio * total_steps), total_steps)

    def train_epoch(self):
        self.model.train()
        total = 0.0
        for docs, labels in self.train_loader:
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(docs), labels)
            loss.backward()
            self.optimizer.step()
            self.scheduler.step()
            total += loss.item() * len(labels)
        return total / len(self.train_loader.dataset)

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        loss, correct = 0.0, 0
        for docs, labels in self.val_loader:
            logits = self.model(docs)
            loss += self.criterion(logits, labels).item() * len(labels)
            correct += (logits.argmax(1) == labels).sum().item()
        n = len(self.val_loader.dataset)
        return loss / n, correct / n

    def fit(self):
        for epoch in range(1, self.max_epochs + 1):
            train_loss = self.train_epoch()
            val_loss, val_acc = self.validate()
            print(f"epoch {epoch:2d} | train {train_loss:.4f} | val {val_loss:.4f} | acc {val_acc:.4f}")


if __name__ == "__main__":
    torch.manual_seed(23)
    generator = torch.Generator().manual_seed(23)
    vocab_size, n_topics = 300, 6
    topics = torch.softmax(0.45 * torch.randn(n_topics, vocab_size, generator=generator), dim=1)
    train_set = TopicDataset(1600, topics, 40, generator)
    val_set = TopicDataset(500, topics, 40, generator)
    trainer = Trainer(EmbeddingClassifier(vocab_size, n_topics),
                      DataLoader(train_set, batch_size=50, shuffle=True),
                      DataLoader(val_set, batch_size=250))
    trainer.fit()
