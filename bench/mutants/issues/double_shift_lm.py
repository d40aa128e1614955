"""Character level GRU language model on a small synthetic grammar."""
import math
import random

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

random.seed(0)
torch.manual_seed(0)

SUBJECTS = ["the cat", "a dog", "my friend", "the old man", "her sister"]
VERBS = ["sees", "likes", "follows", "paints", "forgets"]
OBJECTS = ["the moon", "a river", "red apples", "his garden", "the train"]
BLOCK = 32


def make_corpus(n_sentences):
    parts = []
    for _ in range(n_sentences):
        parts.append(f"{random.choice(SUBJECTS)} {random.choice(VERBS)} {random.choice(OBJECTS)}. ")
    return "".join(parts)


class CharDataset(Dataset):
    def __init__(self, ids, block):
        self.ids = ids
        self.block = block

    def __len__(self):
        return (len(self.ids) - 1) // self.block

    def __getitem__(self, i):
        start = i * self.block
        chunk = self.ids[start:start + self.block + 1]
        return chunk, chunk


class CharLM(nn.Module):
    def __init__(self, vocab_size, dim=64):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, vocab_size)

    def forward(self, input_ids, labels=None):
        hidden, _ = self.rnn(self.embed(input_ids))
        logits = self.head(hidden)
        if labels is None:
            return logits, None
        shift_logits = logits[:, :-1]
        shift_labels = labels[:, 1:]
        loss = F.cross_entropy(shift_logits.reshape(-1, logits.size(-1)), shift_labels.reshape(-1))
        return logits, loss


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    total, count = 0.0, 0
    for x, y in loader:
        _, loss = model(x, labels=y)
        total += loss.item() * len(x)
        count += len(x)
    return total / count


@torch.no_grad()
def generate(model, stoi, itos, prompt, n_chars):
    model.eval()
    ids = torch.tensor([[stoi[c] for c in prompt]])
    for _ in range(n_chars):
        logits, _ = model(ids)
        ids = torch.cat([ids, logits[:, -1].argmax(-1, keepdim=True)], dim=1)
    return "".join(itos[i] for i in ids[0].tolist())


def main():
    text = make_corpus(700)
    chars = sorted(set(text))
    stoi = {c: i for i, c in enumerate(chars)}
    itos = {i: c for c, i in stoi.items()}
    ids = torch.tensor([stoi[c] for c in text])
    split = int(0.9 * len(ids))
    train_loader = DataLoader(CharDataset(ids[:split], BLOCK), batch_size=32, shuffle=True)
    val_loader = DataLoader(CharDataset(ids[split:], BLOCK), batch_size=32)

    model = CharLM(len(chars))
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for epoch in range(5):
        model.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            _, loss = model(x, labels=y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        val_loss = evaluate(model, val_loader)
        print(f"epoch {epoch + 1}: val loss {val_loss:.4f} ppl {math.exp(val_loss):.3f}")
    print("sample:", generate(model, stoi, itos, "the cat ", 60))


if __name__ == "__main__":
    main()
