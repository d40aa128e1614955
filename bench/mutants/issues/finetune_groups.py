"""Fine-tune a pretrained text encoder with separate learning rates per part."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

VOCAB, LENGTH, TAGS, DIM = 60, 16, 5, 32


def sample_sentences(n, n_tags, generator):
    """Tag of a token depends on the token and on the one before it."""
    tokens = torch.randint(0, VOCAB, (n, LENGTH), generator=generator)
    shifted = torch.cat([torch.zeros(n, 1, dtype=torch.long), tokens[:, :-1]], dim=1)
    return tokens, (tokens // 7 + shifted // 20) % n_tags


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.rnn = nn.GRU(DIM, DIM, batch_first=True)

    def forward(self, tokens):
        return self.rnn(self.embed(tokens))[0]


class Tagger(nn.Module):
    def __init__(self, encoder, n_tags):
        super().__init__()
        self.encoder = encoder
        self.adapter = nn.Sequential(nn.Linear(DIM, DIM), nn.ReLU())
        self.fc = nn.Linear(DIM, n_tags)

    def forward(self, tokens):
        return self.fc(self.adapter(self.encoder(tokens)))


def build_optimizer(model, encoder_lr, head_lr):
    parameters = []
    group = {"lr": encoder_lr, "params": []}
    for name, param in model.named_parameters():
        if name.startswith("encoder"):
            group["params"].append(param)
    parameters.append(group)

    group = {"lr": head_lr, "params": []}
    for name, param in model.named_parameters():
        if name.startswith("adapter") or name.startswith("fc"):
            group["params"].append(param)
    parameters.append(group)
    return torch.optim.AdamW(parameters)


def train(model, optimizer, train_loader, val_loader, epochs, name):
    criterion = nn.CrossEntropyLoss()
    for epoch in range(1, epochs + 1):
        model.train()
        total = 0.0
        for tokens, tags in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(tokens).flatten(0, 1), tags.flatten())
            loss.backward()
            optimizer.step()
            total += loss.item() * len(tokens)
        if epoch % 2 == 0:
            print(f"[{name}] epoch {epoch:2d}  loss {total / len(train_loader.dataset):.4f}  "
                  f"val acc {evaluate(model, val_loader):.4f}")


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    correct, count = 0, 0
    for tokens, tags in loader:
        correct += (model(tokens).argmax(-1) == tags).sum().item()
        count += tags.numel()
    return correct / count


def loaders(n_train, n_tags, generator):
    train_set = TensorDataset(*sample_sentences(n_train, n_tags, generator))
    val_set = TensorDataset(*sample_sentences(300, n_tags, generator))
    return DataLoader(train_set, batch_size=32, shuffle=True), DataLoader(val_set, batch_size=150)


def main():
    torch.manual_seed(33)
    generator = torch.Generator().manual_seed(33)
    encoder = Encoder()

    pretrain_model = Tagger(encoder, n_tags=7)
    train(pretrain_model, build_optimizer(pretrain_model, 5e-3, 5e-3),
          *loaders(900, 7, generator), epochs=4, name="pretrain")

    model = Tagger(encoder, n_tags=TAGS)
    train(model, build_optimizer(model, encoder_lr=5e-4, head_lr=5e-3),
          *loaders(700, TAGS, generator), epochs=10, name="finetune")


if __name__ == "__main__":
    main()
