"""Intent classifier for a small home assistant: word-level transformer encoder."""
import copy
import math
import random
from collections import Counter

import torch
import torch.nn as nn
from sklearn.metrics import f1_score
from torch.utils.data import DataLoader, Dataset

PAD, UNK = 0, 1
SLOTS = {
    "time": ["six", "seven", "eight thirty", "noon", "ten to nine", "quarter past five"],
    "day": ["today", "tomorrow", "on monday", "on friday", "this weekend", ""],
    "room": ["kitchen", "bedroom", "living room", "bathroom", "hall"],
    "genre": ["jazz", "rock", "classical", "soul", "techno"],
    "artist": ["nina simone", "the band", "miles davis", "light orchestra", "rain parade"],
    "city": ["oslo", "lima", "new york", "kyoto", "bergen", "porto"],
}
TEMPLATES = {
    "alarm_set": ["wake me at {time} {day}", "set an alarm for {time} {day}", "i need an alarm at {time}"],
    "alarm_cancel": ["cancel the alarm at {time} {day}", "i do not need an alarm at {time}", "turn off the alarm {day}"],
    "music_play": ["play some {genre} music", "put on {artist} in the {room}", "i want to hear {genre} by {artist}"],
    "music_stop": ["stop the {genre} music", "turn off {artist} in the {room}", "i do not want to hear {artist} {day}"],
    "light_on": ["turn on the light in the {room}", "light up the {room} at {time}", "it is dark in the {room}"],
    "light_off": ["turn off the light in the {room}", "no light in the {room} at {time}", "make it dark in the {room}"],
    "weather": ["will there be rain in {city} {day}", "is it warm in {city} {day}", "do i need a coat in {city} at {time}"],
    "traffic": ["how long to {city} {day}", "is the road to {city} open at {time}", "when do i need to leave for {city}"],
}
OPENERS = ["", "", "hey", "please", "um", "could you", "so i was wondering", "sorry to bother you but"]
CLOSERS = ["", "", "thanks", "right now", "if you can", "or whatever", "when you have a moment please"]
FREQ = [6, 2, 6, 3, 4, 4, 3, 1]


def write_sentences(n, seed):
    rng = random.Random(seed)
    names = list(TEMPLATES)
    seen, rows = set(), []
    while len(rows) < n:
        intent = rng.choices(names, FREQ)[0]
        body = rng.choice(TEMPLATES[intent]).format(**{k: rng.choice(v) for k, v in SLOTS.items()})
        words = f"{rng.choice(OPENERS)} {body} {rng.choice(CLOSERS)}".split()
        words = [w for w in words if rng.random() > 0.12]          # dropped by the recogniser
        words = [w[:-1] if len(w) > 3 and rng.random() < 0.05 else w for w in words]
        key = " ".join(words)
        if len(words) < 3 or key in seen:
            continue
        seen.add(key)
        rows.append((words, intent))
    return rows


class Vocabulary:
    def __init__(self, rows, min_count=2):
        counts = Counter(w for words, _ in rows for w in words)
        self.index = {w: i + 2 for i, w in enumerate(sorted(w for w, c in counts.items() if c >= min_count))}

    def __len__(self):
        return len(self.index) + 2

    def encode(self, words):
        return [self.index.get(w, UNK) for w in words]


def label_index(rows):
    return {name: i for i, name in enumerate(dict.fromkeys(intent for _, intent in rows))}


class IntentDataset(Dataset):
    def __init__(self, rows, vocab, labels, word_dropout=0.0):
        self.items = [(vocab.encode(words), labels[intent]) for words, intent in rows]
        self.word_dropout = word_dropout

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        ids, label = self.items[i]
        if self.word_dropout:
            ids = [UNK if random.random() < self.word_dropout else t for t in ids]
        return ids, label


def collate(batch):
    longest = max(len(ids) for ids, _ in batch)
    tokens = torch.full((len(batch), longest), PAD)
    for row, (ids, _) in enumerate(batch):
        tokens[row, :len(ids)] = torch.tensor(ids)
    return tokens, torch.tensor([label for _, label in batch])


class IntentNet(nn.Module):
    def __init__(self, n_words, n_classes, dim=32, heads=4, layers=2, max_len=40):
        super().__init__()
        self.embed = nn.Embedding(n_words, dim, padding_idx=PAD)
        self.position = nn.Embedding(max_len, dim)
        layer = nn.TransformerEncoderLayer(dim, heads, 2 * dim, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(dim, n_classes)
        self.scale = math.sqrt(dim)

    def forward(self, tokens):
        keep = tokens != PAD
        x = self.embed(tokens) * self.scale + self.position(torch.arange(tokens.shape[1]))
        x = self.encoder(x, src_key_padding_mask=~keep)
        weight = keep.unsqueeze(-1).float()
        pooled = (x * weight).sum(dim=1) / weight.sum(dim=1)
        return self.head(pooled)


@torch.no_grad()
def predict(model, loader):
    model.eval()
    logits, gold = [], []
    for tokens, label in loader:
        logits.append(model(tokens))
        gold.append(label)
    return torch.cat(logits), torch.cat(gold)


def main():
    random.seed(0)
    torch.manual_seed(0)
    rows = write_sentences(1500, seed=11)
    train_rows, val_rows, test_rows = rows[:900], rows[900:1100], rows[1100:]
    vocab, labels = Vocabulary(train_rows), label_index(train_rows)
    train = DataLoader(IntentDataset(train_rows, vocab, labels, word_dropout=0.1), 32, shuffle=True, collate_fn=collate)
    val = DataLoader(IntentDataset(val_rows, vocab, labels), 100, collate_fn=collate)
    test = DataLoader(IntentDataset(test_rows, vocab, labels), 100, collate_fn=collate)

    counts = torch.tensor([sum(i == name for _, i in train_rows) for name in labels]).float()
    criterion = nn.CrossEntropyLoss(weight=counts.sum() / (len(labels) * counts))
    model = IntentNet(len(vocab), len(labels))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    best_f1, best_state = -1.0, None
    for epoch in range(8):
        model.train()
        running = 0.0
        for tokens, label in train:
            loss = criterion(model(tokens), label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss.item()
        logits, gold = predict(model, val)
        f1 = f1_score(gold, logits.argmax(1), average="macro")
        print(f"epoch {epoch}: train loss {running / len(train):.4f} val loss {criterion(logits, gold):.4f} val F1 {f1:.4f}")
        if f1 > best_f1:
            best_f1, best_state = f1, copy.deepcopy(model.state_dict())
    model.load_state_dict(best_state)
    logits, gold = predict(model, test)
    accuracy = (logits.argmax(1) == gold).float().mean()
    print(f"test loss {criterion(logits, gold):.5f} accuracy {accuracy:.4f} F1 {f1_score(gold, logits.argmax(1), average='macro'):.4f}")


if __name__ == "__main__":
    main()
