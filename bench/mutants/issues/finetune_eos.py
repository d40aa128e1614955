"""Fine-tune a tiny decoder on instruction -> answer pairs (alternate two letters n times)."""
import itertools
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader

SPECIALS = ["<eos>", "<sep>", "<pad>"]
TOKENS = SPECIALS + list("123456") + list("abcdefghij")
STOI = {t: i for i, t in enumerate(TOKENS)}
EOS_ID, SEP_ID, PAD_ID = STOI["<eos>"], STOI["<sep>"], STOI["<pad>"]
IGNORE = -100
MAX_NEW_TOKENS = 12


def make_example(count, letters):
    prompt = [STOI[str(count)], STOI[letters[0]], STOI[letters[1]], SEP_ID]
    answer = [STOI[letters[i % 2]] for i in range(count)]
    return prompt, answer


def collate(examples):
    sequences = [torch.tensor(prompt + answer + [EOS_ID]) for prompt, answer in examples]
    input_ids = nn.utils.rnn.pad_sequence(sequences, batch_first=True, padding_value=PAD_ID)
    labels = input_ids.clone()
    labels[labels == PAD_ID] = IGNORE
    for row, (prompt, _) in enumerate(examples):
        labels[row, :len(prompt)] = IGNORE
    return input_ids, labels


class TinyDecoder(nn.Module):
    def __init__(self, vocab, dim=64):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.lm_head = nn.Linear(dim, vocab)

    def forward(self, input_ids, hidden=None):
        out, hidden = self.rnn(self.embed(input_ids), hidden)
        return self.lm_head(out), hidden


def lm_loss(logits, labels):
    return F.cross_entropy(logits[:, :-1].reshape(-1, logits.size(-1)),
                           labels[:, 1:].reshape(-1), ignore_index=IGNORE)


@torch.no_grad()
def validate(model, loader):
    model.eval()
    loss, correct, count = 0.0, 0, 0
    for input_ids, labels in loader:
        logits, _ = model(input_ids)
        keep = labels[:, 1:] != IGNORE
        loss += lm_loss(logits, labels).item() * keep.sum().item()
        correct += ((logits[:, :-1].argmax(-1) == labels[:, 1:]) & keep).sum().item()
        count += keep.sum().item()
    return loss / count, correct / count


@torch.no_grad()
def generate(model, prompt):
    model.eval()
    logits, hidden = model(torch.tensor([prompt]))
    answer = []
    while len(answer) < MAX_NEW_TOKENS:
        token = int(logits[0, -1].argmax())
        if token == EOS_ID:
            break
        answer.append(token)
        logits, hidden = model(torch.tensor([[token]]), hidden)
    return answer


def main():
    torch.manual_seed(0)
    examples = [make_example(count, letters) for count in range(1, 7)
                for letters in itertools.permutations("abcdefghij", 2)]
    random.Random(0).shuffle(examples)
    train_data, val_data = examples[:400], examples[400:]
    train_loader = DataLoader(train_data, batch_size=32, shuffle=True, collate_fn=collate)
    val_loader = DataLoader(val_data, batch_size=100, collate_fn=collate)

    model = TinyDecoder(len(TOKENS))
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    for epoch in range(1, 41):
        model.train()
        for input_ids, labels in train_loader:
            optimizer.zero_grad()
            logits, _ = model(input_ids)
            loss = lm_loss(logits, labels)
            loss.backward()
            optimizer.step()
        if epoch % 8 == 0:
            val_loss, val_acc = validate(model, val_loader)
            print(f"epoch {epoch:2d}  val loss {val_loss:.4f}  val token acc {val_acc:.4f}")

    outputs = [generate(model, prompt) for prompt, _ in val_data]
    exact = sum(o == answer for o, (_, answer) in zip(outputs, val_data)) / len(val_data)
    length = sum(len(o) for o in outputs) / len(outputs)
    print(f"generation: exact match {exact:.4f}  mean length {length:.2f}")


if __name__ == "__main__":
    main()
