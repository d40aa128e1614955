"""Keyword spotting on synthetic one-second clips: log-mel-like spectrogram + small CNN."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

SAMPLE_RATE = 4000
KEYWORDS = ["up", "down", "left", "right", "stop", "_silence_"]


def synthesize(label, speaker, rng):
    """Each word is a pair of gliding tones; the speaker changes pitch and speed."""
    n = SAMPLE_RATE
    t = np.arange(n) / SAMPLE_RATE
    wave = rng.normal(0, 1.3, n)
    if KEYWORDS[label] == "_silence_":
        return (wave * rng.uniform(0.5, 2.0)).astype(np.float32)
    glides = {"up": (300, 900), "down": (900, 300), "left": (500, 550),
              "right": (550, 1200), "stop": (1200, 550)}
    start, end = glides[KEYWORDS[label]]
    pitch = 0.9 + 0.2 * (speaker % 7) / 6
    length = 0.45 + 0.15 * (speaker % 5) / 4
    begin = rng.uniform(0.05, 0.95 - length)
    u = np.clip((t - begin) / length, 0, 1)
    freq = pitch * (start + (end - start) * u)
    phase = 2 * np.pi * np.cumsum(freq) / SAMPLE_RATE
    envelope = np.sin(np.pi * u) ** 0.5
    wave = wave + envelope * (np.sin(phase) + 0.4 * np.sin(1.5 * phase))
    return (wave * rng.uniform(0.4, 1.2)).astype(np.float32)


def make_corpus(num_speakers=30, takes=4, seed=7):
    rng = np.random.default_rng(seed)
    clips, labels, speakers = [], [], []
    for speaker in range(num_speakers):
        for label in range(len(KEYWORDS)):
            for _ in range(takes):
                clips.append(synthesize(label, speaker, rng))
                labels.append(label)
                speakers.append(speaker)
    return np.stack(clips), np.array(labels), np.array(speakers)


class Frontend(nn.Module):
    """Waveform -> log spectrogram in 32 bands, normalised with training statistics."""

    def __init__(self, n_fft=256, hop=80, bands=32):
        super().__init__()
        self.n_fft, self.hop = n_fft, hop
        self.register_buffer("window", torch.hann_window(n_fft))
        bins = n_fft // 2 + 1
        bank = torch.zeros(bands, bins)
        edges = torch.linspace(0, bins - 1, bands + 1).round().long()
        for b in range(bands):
            bank[b, edges[b]:edges[b + 1] + 1] = 1.0
        self.register_buffer("bank", bank / bank.sum(1, keepdim=True))
        self.register_buffer("mean", torch.zeros(bands, 1))
        self.register_buffer("std", torch.ones(bands, 1))

    def spectrogram(self, wave):
        spec = torch.stft(wave, self.n_fft, hop_length=self.hop, window=self.window, return_complex=True)
        power = spec.abs().pow(2)
        return torch.log(self.bank @ power + 1e-4)

    def fit(self, waves):
        feats = self.spectrogram(waves)
        self.mean.copy_(feats.mean(dim=(0, 2)).unsqueeze(1))
        self.std.copy_(feats.std(dim=(0, 2)).unsqueeze(1))

    def forward(self, wave):
        return ((self.spectrogram(wave) - self.mean) / self.std).unsqueeze(1)


class SpeechClips(Dataset):
    def __init__(self, clips, labels, frontend, augment=False):
        self.clips, self.labels = torch.from_numpy(clips), torch.from_numpy(labels)
        self.frontend, self.augment = frontend, augment

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        wave = self.clips[i]
        if self.augment:
            wave = torch.roll(wave, int(torch.randint(-200, 201, (1,))))
            wave = wave + 0.02 * torch.randn_like(wave)
        feats = self.frontend(wave.unsqueeze(0))[0]
        if self.augment:
            start = int(torch.randint(0, 28, (1,)))
            feats[:, start:start + 4, :] = 0.0    # frequency mask
        return feats, self.labels[i]


class KeywordNet(nn.Module):
    def __init__(self, num_classes, width=12):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, width, 3, stride=2, padding=1), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1), nn.BatchNorm2d(2 * width), nn.ReLU(),
            nn.Conv2d(2 * width, 2 * width, 3, padding=1), nn.BatchNorm2d(2 * width), nn.ReLU())
        self.dropout = nn.Dropout(0.2)
        # keep the frequency axis, average over time
        self.classifier = nn.Linear(2 * width * 8, num_classes)

    def forward(self, x):
        h = self.features(x).mean(dim=3).flatten(1)
        return self.classifier(self.dropout(h))


class Trainer:
    def __init__(self, model, train_set, val_set, epochs=5, lr=8e-3):
        self.model, self.epochs = model, epochs
        self.train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
        self.val_loader = DataLoader(val_set, batch_size=64)
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr * 5, momentum=0.9, weight_decay=1e-4)
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, T_max=epochs)

    def fit(self):
        for epoch in range(self.epochs):
            self.model.train()
            losses = []
            for x, y in self.train_loader:
                logits = self.model(x)
                loss = F.cross_entropy(logits, y, label_smoothing=0.05)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                losses.append(loss.item())
            self.scheduler.step()
            acc, _ = self.evaluate(self.val_loader)
            print(f"epoch {epoch} loss {np.mean(losses):.5f} val acc {acc:.4f}")

    @torch.no_grad()
    def evaluate(self, loader):
        self.model.eval()
        confusion = torch.zeros(len(KEYWORDS), len(KEYWORDS), dtype=torch.long)
        for x, y in loader:
            pred = self.model(x).argmax(dim=1)
            for t, p in zip(y, pred):
                confusion[t, p] += 1
        recall = confusion.diag() / confusion.sum(dim=1)
        return confusion.diag().sum().item() / confusion.sum().item(), recall


if __name__ == "__main__":
    torch.manual_seed(11)
    clips, labels, speakers = make_corpus()
    # no speaker is in two of the sets
    train, val, test = speakers < 18, (speakers >= 18) & (speakers < 24), speakers >= 24
    frontend = Frontend()
    frontend.fit(torch.from_numpy(clips[train]))
    train_set = SpeechClips(clips[train], labels[train], frontend, augment=True)
    val_set = SpeechClips(clips[val], labels[val], frontend)
    test_set = SpeechClips(clips[test], labels[test], frontend)
    trainer = Trainer(KeywordNet(len(KEYWORDS)), train_set, val_set)
    trainer.fit()
    accuracy, recall = trainer.evaluate(DataLoader(test_set, batch_size=64))
    print(f"test accuracy {accuracy:.4f}")
    print("test recall  ", {k: round(r, 4) for k, r in zip(KEYWORDS, recall.tolist())})
