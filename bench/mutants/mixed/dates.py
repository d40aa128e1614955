# Teaching a GRU to read dates: "tuesday the 3rd of march 1998" -> "3/3/1998"
# Encoder GRU -> dot attention -> decoder GRU, characters in, characters out.
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils import clip_grad_norm_
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

random.seed(13)
torch.manual_seed(13)

MONTHS = ["january", "february", "march", "april", "may", "june", "july", "august",
          "september", "october", "november", "december"]
PAD, BOS, EOS = 0, 1, 2
IN_CHARS = {c: i + 3 for i, c in enumerate("abcdefghijklmnopqrstuvwxyz0123456789 ,.'")}
OUT_CHARS = {c: i + 3 for i, c in enumerate("0123456789/")}
OUT_BACK = {i: c for c, i in OUT_CHARS.items()}
MAX_OUT = 12


def random_date():
    d, m, y = random.randint(1, 28), random.randint(1, 12), random.randint(1960, 2019)
    name = MONTHS[m - 1]
    if random.random() < 0.4:
        name = name[:3]
    elif random.random() < 0.5:                                      # a slip of the pen
        k = random.randrange(len(name))
        name = name[:k] + random.choice("aeinrst") * random.randint(0, 1) + name[k + 1:]
    th = {1: "st", 2: "nd", 3: "rd"}.get(d % 10 if d not in (11, 12, 13) else 0, "th")
    text = random.choice([
        f"{d} {name} {y}", f"{name} {d}, {y}", f"{d}{th} of {name} {y}", f"{name} the {d}{th}, {y}", f"{d}. {name} '{y % 100:02d}",
    ])
    return text, f"{d}/{m}/{y}"


def encode(text, answer):
    src = torch.tensor([IN_CHARS[c] for c in text])
    tgt = torch.tensor([BOS] + [OUT_CHARS[c] for c in answer] + [EOS])
    return src, tgt


def make_batch(pairs):
    srcs, tgts = zip(*[encode(t, a) for t, a in pairs])
    lengths = torch.tensor([len(s) for s in srcs])
    return pad_sequence(srcs, batch_first=True), lengths, pad_sequence(tgts, batch_first=True)


class Encoder(nn.Module):
    def __init__(self, vocab, emb, hid):
        super().__init__()
        self.emb = nn.Embedding(vocab, emb, padding_idx=PAD)
        self.gru = nn.GRU(emb, hid // 2, batch_first=True, bidirectional=True)

    def forward(self, src, lengths):
        packed = pack_padded_sequence(self.emb(src), lengths, batch_first=True, enforce_sorted=False)
        out, h = self.gru(packed)
        out, _ = pad_packed_sequence(out, batch_first=True)
        return out, torch.cat([h[0], h[1]], dim=1).unsqueeze(0)      # (B, T, hid), (1, B, hid)


class Decoder(nn.Module):
    def __init__(self, vocab, emb, hid):
        super().__init__()
        self.emb = nn.Embedding(vocab, emb, padding_idx=PAD)
        self.gru = nn.GRU(emb, hid, batch_first=True)
        self.query = nn.Linear(hid, hid, bias=False)
        self.mix = nn.Linear(2 * hid, hid)
        self.drop = nn.Dropout(0.1)
        self.out = nn.Linear(hid, vocab)

    def forward(self, tokens, h, memory, src_mask):
        states, h = self.gru(self.emb(tokens), h)
        scores = self.query(states) @ memory.transpose(1, 2)         # (B, L, T)
        scores = scores.masked_fill(~src_mask.unsqueeze(1), float("-inf"))
        attn = torch.softmax(scores, dim=-1)
        context = attn @ memory
        mixed = torch.tanh(self.mix(torch.cat([states, context], dim=-1)))
        return self.out(self.drop(mixed)), h


encoder = Encoder(len(IN_CHARS) + 3, 24, 80)
decoder = Decoder(len(OUT_CHARS) + 3, 24, 80)
params = list(encoder.parameters()) + list(decoder.parameters())


def batch_loss(src, lengths, tgt):
    memory, h = encoder(src, lengths)
    dec_in, gold = tgt[:, :-1], tgt[:, 1:]
    logits, _ = decoder(dec_in, h, memory, src != PAD)
    return F.cross_entropy(logits.reshape(-1, logits.size(-1)), gold.reshape(-1), ignore_index=PAD)


@torch.no_grad()
def greedy(src, lengths):
    encoder.eval()
    decoder.eval()
    memory, h = encoder(src, lengths)
    token = torch.full((len(src), 1), BOS)
    pieces = []
    for _ in range(MAX_OUT):
        logits, h = decoder(token, h, memory, src != PAD)
        token = logits.argmax(dim=-1)
        pieces.append(token)
    return torch.cat(pieces, dim=1)


def to_text(row):
    text = ""
    for i in row.tolist():
        if i == EOS:
            break
        text += OUT_BACK.get(i, "?")
    return text


def exact_match(pairs):
    right = 0
    for i in range(0, len(pairs), 100):
        src, lengths, _ = make_batch(pairs[i:i + 100])
        guesses = [to_text(r) for r in greedy(src, lengths)]
        right += sum(g == answer for g, (_, answer) in zip(guesses, pairs[i:i + 100]))
    return right / len(pairs)


# ---- data: no date (in any spelling) is in two parts
by_date = {}
while len(by_date) < 1500:
    text, answer = random_date()
    by_date.setdefault(answer, text)
pairs = [(t, a) for a, t in by_date.items()]
train, val, test = pairs[:1000], pairs[1000:1100], pairs[1100:]

# ---- training
EPOCHS, BATCH = 5, 32
optimizer = torch.optim.Adam(params, lr=6e-3)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=6e-3, total_steps=EPOCHS * ((len(train) + BATCH - 1) // BATCH))
for epoch in range(EPOCHS):
    encoder.train()
    decoder.train()
    random.shuffle(train)
    total, steps = 0.0, 0
    for i in range(0, len(train), BATCH):
        loss = batch_loss(*make_batch(train[i:i + BATCH]))
        optimizer.zero_grad()
        loss.backward()
        clip_grad_norm_(params, 1.0)
        optimizer.step()
        scheduler.step()
        total += loss.item()
        steps += 1
    print(f"epoch {epoch + 1:2d}  loss {total / steps:.4f}  val exact {exact_match(val):.3f}")

print(f"test exact match {exact_match(test):.4f}")
src, lengths, _ = make_batch(test[:4])
for (text, answer), row in zip(test[:4], greedy(src, lengths)):
    print(f"  {text!r} -> {to_text(row)} (should be {answer})")
