import math

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

VOCAB, BLOCK, SEED = 20, 32, 21


def sample_text(transition, length, generator):
    text = [0]
    for _ in range(length - 1):
        text.append(int(torch.multinomial(transition[text[-1]], 1, generator=generator)))
    return torch.tensor(text)


class BlockDataset(Dataset):
    def __init__(self, text):
        self.text = text

    def __len__(self):
        return len(self.text) // BLOCK

    def __getitem__(self, i):
        chunk = self.text[i * BLOCK:(i + 1) * BLOCK]
        return {"input_ids": chunk, "labels": chunk.clone()}


class CausalLM(nn.Module):
    """Recurrent language model; `labels` are aligned with `input_ids` and shifted inside."""

    def __init__(self, vocab, dim=64):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.LSTM(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, vocab)

    def forward(self, input_ids, labels=None):
        hidden, _ = self.rnn(self.embed(input_ids))
        logits = self.head(hidden)
        loss = None
        if labels is not None:
            shift_logits = logits[:, :-1].reshape(-1, logits.size(-1))
            shift_labels = labels[:, 1:].reshape(-1)
            loss = nn.functional.cross_entropy(shift_logits, shift_labels)
        return loss, logits


def perplexity(model, loader):
    model.eval()
    losses = []
    with torch.no_grad():
        for batch in loader:
            loss, _ = model(**batch)
            losses.append(loss.item() * len(batch["input_ids"]))
    return math.exp(sum(losses) / len(loader.dataset))


def generated_likelihood(model, transition, generator, n=40, length=30):
    """Mean log-probability of the model's own samples under the true source."""
    model.eval()
    tokens = torch.randint(0, VOCAB, (n, 1), generator=generator)
    with torch.no_grad():
        while tokens.size(1) < length:
            _, logits = model(tokens)
            probs = logits[:, -1].softmax(-1)
            tokens = torch.cat([tokens, torch.multinomial(probs, 1, generator=generator)], dim=1)
    return transition[tokens[:, :-1], tokens[:, 1:]].log().mean().item()


def main():
    torch.manual_seed(SEED)
    generator = torch.Generator().manual_seed(SEED)
    transition = (torch.randn(VOCAB, VOCAB, generator=generator) * 2.5).softmax(-1)
    train_set = BlockDataset(sample_text(transition, 24000, generator))
    val_set = BlockDataset(sample_text(transition, 4800, generator))
    train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=50)

    model = CausalLM(VOCAB)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(1, 9):
        model.train()
        total = 0.0
        for batch in train_loader:
            optimizer.zero_grad()
            loss, _ = model(**batch)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item() * len(batch["input_ids"])
        print(f"epoch {epoch}  train loss {total / len(train_set):.4f}  "
              f"val ppl {perplexity(model, val_loader):.3f}")
    print(f"log-likelihood of samples {generated_likelihood(model, transition, generator):.3f}")


if __name__ == "__main__":
    main()
