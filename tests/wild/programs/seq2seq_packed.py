"""Healthy: encoder-decoder with packed sequences, teacher forcing decided at random, padding ignored by the loss."""
import random

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader

PAD, BOS, EOS = 0, 1, 2
VOCAB = 14


class Encoder(nn.Module):
    def __init__(self, emb=16, hid=48):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, emb, padding_idx=PAD)
        self.rnn = nn.GRU(emb, hid, batch_first=True)

    def forward(self, src, lengths):
        packed = pack_padded_sequence(self.embedding(src), lengths, batch_first=True, enforce_sorted=False)
        _, hidden = self.rnn(packed)
        return hidden


class Decoder(nn.Module):
    def __init__(self, emb=16, hid=48):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, emb, padding_idx=PAD)
        self.rnn = nn.GRU(emb, hid, batch_first=True)
        self.out = nn.Linear(hid, VOCAB)

    def forward(self, token, hidden):
        output, hidden = self.rnn(self.embedding(token), hidden)
        return self.out(output), hidden


class Seq2Seq(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.decoder = Decoder()

    def forward(self, src, lengths, trg, teacher_forcing_ratio=0.7):
        hidden = self.encoder(src, lengths)
        if random.random() < teacher_forcing_ratio:
            return self.decoder(trg[:, :-1], hidden)[0]
        token, outputs = trg[:, :1], []
        for _ in range(trg.size(1) - 1):
            logits, hidden = self.decoder(token, hidden)
            outputs.append(logits)
            token = logits.argmax(-1).detach()
        return torch.cat(outputs, 1)


def sample():
    """Task: sort the digits of the source."""
    digits = [random.randint(4, VOCAB - 1) for _ in range(random.randint(3, 6))]
    return torch.tensor(digits + [EOS]), torch.tensor([BOS] + sorted(digits) + [EOS])


def collate(batch):
    src, trg = zip(*batch)
    lengths = torch.tensor([len(s) for s in src])
    return pad_sequence(src, True, PAD), lengths, pad_sequence(trg, True, PAD)


def main():
    random.seed(0)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    seen = {}
    while len(seen) < 900:
        s, t = sample()
        seen[tuple(s.tolist())] = (s, t)
    pairs = list(seen.values())
    train_dl = DataLoader(pairs[:768], batch_size=64, shuffle=True, collate_fn=collate)
    val_dl = DataLoader(pairs[768:], batch_size=66, collate_fn=collate)
    model = Seq2Seq()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    criterion = nn.CrossEntropyLoss(ignore_index=PAD)
    for epoch in range(6):
        model.train()
        for src, lengths, trg in train_dl:
            optimizer.zero_grad()
            output = model(src, lengths, trg)
            loss = criterion(output.reshape(-1, VOCAB), trg[:, 1:].reshape(-1))
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        model.eval()
        hit = n = 0
        with torch.no_grad():
            for src, lengths, trg in val_dl:
                pred = model(src, lengths, trg, 0).argmax(-1)
                keep = trg[:, 1:] != PAD
                hit += (pred == trg[:, 1:])[keep].sum().item()
                n += keep.sum().item()
        print(f"epoch {epoch} loss {loss.item():.4f} val token accuracy {hit / n:.4f}")


if __name__ == "__main__":
    main()
