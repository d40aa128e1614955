"""BiLSTM tagger for made-up names in sentences of different lengths."""

import random

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

TAGS = ["O", "B-PER", "I-PER", "B-LOC"]


class SentenceDataset(Dataset):
    """Sentences made by a little grammar; a title starts a name, a preposition starts a place."""

    def __init__(self, n, seed):
        r = random.Random(seed)
        self.rows = []
        for _ in range(n):
            words, tags = [], []
            for _ in range(r.randint(1, 6)):
                p = r.random()
                if p < 0.4:
                    words += [r.randint(10, 19), r.randint(40, 90), r.randint(40, 90)]
                    tags += [0, 1, 2]
                elif p < 0.7:
                    words += [r.randint(20, 25), r.randint(40, 90)]
                    tags += [0, 3]
                else:
                    words, tags = [*words, r.randint(26, 39)], [*tags, 0]
            self.rows.append((torch.tensor(words), torch.tensor(tags)))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def collate_fn(batch):
    words, tags = zip(*batch, strict=True)
    return pad_sequence(words, batch_first=True, padding_value=0), pad_sequence(
        tags, batch_first=True, padding_value=-100
    )


class Tagger(nn.Module):
    """Embedding, BiLSTM, linear layer."""

    def __init__(self, vocab=100, emb=16, hidden=16):
        super().__init__()
        self.embedding = nn.Embedding(vocab, emb, padding_idx=0)
        self.lstm = nn.LSTM(emb, hidden, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(2 * hidden, len(TAGS))

    def forward(self, words):
        out, _ = self.lstm(self.embedding(words))
        return self.fc(out)


@torch.no_grad()
def evaluate(model, loader, criterion):
    model.eval()
    loss_sum, n_tok, correct = 0.0, 0, 0
    for words, tags in loader:
        logits, mask = model(words), tags != -100
        loss_sum += criterion(logits.transpose(1, 2), tags).item() * mask.sum().item()
        correct += ((logits.argmax(-1) == tags) & mask).sum().item()
        n_tok += mask.sum().item()
    return loss_sum / n_tok, correct / n_tok


def main():
    torch.manual_seed(0)
    train_loader = DataLoader(SentenceDataset(300, 1), batch_size=16, shuffle=True, collate_fn=collate_fn)
    val_loader = DataLoader(SentenceDataset(150, 2), batch_size=50, collate_fn=collate_fn)
    model = Tagger()
    criterion = nn.CrossEntropyLoss(ignore_index=-100)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(1, 6):
        model.train()
        for words, tags in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(words).transpose(1, 2), tags)
            loss.backward()
            optimizer.step()
        val_loss, val_acc = evaluate(model, val_loader, criterion)
        print(
            f"Epoch {epoch} | last train loss {loss.item():.4f} | val loss {val_loss:.4f} | val token acc {val_acc:.4f}"
        )


if __name__ == "__main__":
    main()
