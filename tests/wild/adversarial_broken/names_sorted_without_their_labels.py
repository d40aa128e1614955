"""An object joins texts of different lengths: it sorts them, and takes the labels in the order of the data set."""

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(5)


class Texts(Dataset):
    def __init__(self, count):
        self.texts = [torch.randint(1, 20, (int(torch.randint(3, 15, ())),)) for _ in range(count)]

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, index):
        return self.texts[index], int(self.texts[index][0] % 3)


class Join:
    def __call__(self, batch):
        texts, labels = [text for text, _ in batch], torch.tensor([label for _, label in batch])
        longest_first = torch.tensor([len(text) for text in texts]).argsort(descending=True)  # error: targets-of-other-samples
        return {"text": pad_sequence([texts[i] for i in longest_first], batch_first=True), "label": labels}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.EmbeddingBag(20, 16, padding_idx=0), nn.Linear(16, 3)

    def forward(self, text):
        return self.head(self.embedding(text))


model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
loader = DataLoader(Texts(240), batch_size=24, shuffle=True, collate_fn=Join())
for _ in range(3):
    for batch in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(batch["text"]), batch["label"]).backward()
        optimizer.step()
