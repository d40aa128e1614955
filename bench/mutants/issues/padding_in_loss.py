# Sequence-to-sequence with GRUs: learn to sort the digits of a sequence of varying length.
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence, pack_padded_sequence
from torch.utils.data import DataLoader

PAD, BOS, EOS = 0, 1, 2
N_SYMBOLS = 10
VOCAB = N_SYMBOLS + 3


def make_pairs(n, generator):
    pairs = []
    for _ in range(n):
        long = torch.rand(1, generator=generator).item() < 0.1
        length = 24 if long else int(torch.randint(3, 8, (1,), generator=generator))
        src = torch.randint(3, VOCAB, (length,), generator=generator)
        tgt = torch.cat([torch.tensor([BOS]), src.sort().values, torch.tensor([EOS])])
        pairs.append((src, tgt))
    return pairs


def collate(batch):
    src, tgt = zip(*batch)
    lengths = torch.tensor([len(s) for s in src])
    return (pad_sequence(src, batch_first=True, padding_value=PAD), lengths,
            pad_sequence(tgt, batch_first=True, padding_value=PAD))


class Seq2Seq(nn.Module):
    def __init__(self, dim=40):
        super().__init__()
        self.src_embed = nn.Embedding(VOCAB, dim, padding_idx=PAD)
        self.tgt_embed = nn.Embedding(VOCAB, dim, padding_idx=PAD)
        self.encoder = nn.GRU(dim, dim, batch_first=True)
        self.decoder = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, VOCAB)

    def encode(self, src, lengths):
        packed = pack_padded_sequence(self.src_embed(src), lengths, batch_first=True, enforce_sorted=False)
        _, hidden = self.encoder(packed)
        return hidden

    def forward(self, src, lengths, tgt_in):
        out, _ = self.decoder(self.tgt_embed(tgt_in), self.encode(src, lengths))
        return self.out(out)

    @torch.no_grad()
    def greedy(self, src, lengths, max_len):
        hidden = self.encode(src, lengths)
        token = torch.full((len(src), 1), BOS)
        steps = []
        for _ in range(max_len):
            out, hidden = self.decoder(self.tgt_embed(token), hidden)
            token = self.out(out).argmax(-1)
            steps.append(token)
        return torch.cat(steps, dim=1)


def token_accuracy(model, loader):
    model.eval()
    correct = total = 0
    for src, lengths, tgt in loader:
        gold = tgt[:, 1:]
        pred = model.greedy(src, lengths, gold.size(1))
        valid = gold != PAD
        correct += ((pred == gold) & valid).sum().item()
        total += valid.sum().item()
    return correct / total


def run():
    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(1)
    train_loader = DataLoader(make_pairs(900, generator), batch_size=32, shuffle=True, collate_fn=collate)
    val_loader = DataLoader(make_pairs(200, generator), batch_size=64, collate_fn=collate)

    model = Seq2Seq()
    criterion = nn.CrossEntropyLoss(ignore_index=PAD)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(1, 5):
        model.train()
        running = 0.0
        for src, lengths, tgt in train_loader:
            logits = model(src, lengths, tgt[:, :-1])
            loss = criterion(logits.reshape(-1, VOCAB), tgt[:, 1:].reshape(-1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss.item()
        print(f"[{epoch}] train loss {running / len(train_loader):.4f}  "
              f"val token acc {token_accuracy(model, val_loader):.4f}")


run()
