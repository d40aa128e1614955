import torch
from _state import tell
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Sequences(Dataset):
    def __init__(self, generator):
        self.generator = generator
        self.x = torch.randn(40, 6, 8)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        noise = torch.randn(6, 8, generator=self.generator)
        return self.x[index] + 0.1 * noise, int(self.x[index, 0, 0] > 0)


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.2, batch_first=True)
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        x.mul_(0.5)
        return self.head(self.encoder(x).mean(1))


def main():
    torch.manual_seed(5)
    generator = torch.Generator().manual_seed(1)
    train, val, model = Sequences(generator), Sequences(generator), Network()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    loaders = DataLoader(train, 8, shuffle=True, num_workers=2), DataLoader(val, 8, num_workers=2)
    for epoch in range(2):
        model.train()
        for x, y in loaders[0]:
            optimizer.zero_grad(set_to_none=False)
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            print(epoch, repr(loss.item()))
        model.eval()
        with torch.inference_mode():
            for x, _ in loaders[1]:
                print(repr(model(x).sum().item()), repr(x.sum().item()))
    print(generator.get_state().sum().item())
    tell(model, optimizer)


if __name__ == "__main__":
    main()
