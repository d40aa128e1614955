"""Healthy: CLIP: two encoders, a learned temperature that is clamped in place after the step, cross entropy over rows and columns."""
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class TextEncoder(nn.Module):
    def __init__(self, vocabulary=12, width=24, embed=16):
        super().__init__()
        self.token_embedding = nn.Embedding(vocabulary, width)
        self.positional_embedding = nn.Parameter(torch.empty(3, width).normal_(std=0.01))
        layer = nn.TransformerEncoderLayer(width, 2, 48, dropout=0.0, batch_first=True)
        self.transformer = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.ln_final = nn.LayerNorm(width)
        self.text_projection = nn.Parameter(torch.empty(width, embed).normal_(std=width**-0.5))

    def forward(self, text):
        x = self.transformer(self.token_embedding(text) + self.positional_embedding)
        return self.ln_final(x)[:, -1] @ self.text_projection


class CLIP(nn.Module):
    def __init__(self):
        super().__init__()
        self.visual = nn.Sequential(
            nn.Conv2d(3, 16, 3, stride=2, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.Flatten(), nn.Linear(256, 16, bias=False))
        self.text = TextEncoder()
        self.logit_scale = nn.Parameter(torch.ones([]) * np.log(1 / 0.07))

    def forward(self, image, text):
        image_features = F.normalize(self.visual(image), dim=-1)
        text_features = F.normalize(self.text(text), dim=-1)
        logits_per_image = self.logit_scale.exp() * image_features @ text_features.t()
        return logits_per_image, logits_per_image.t()


class Pictures(torch.utils.data.Dataset):
    """One square of a colour at a place; the caption names both."""

    def __init__(self, n):
        g = torch.Generator().manual_seed(n)
        self.colour = torch.randint(0, 3, (n,), generator=g)
        self.place = torch.randint(0, 4, (n,), generator=g)
        self.noise = 0.2 * torch.randn(n, 3, 8, 8, generator=g)

    def __len__(self):
        return len(self.colour)

    def __getitem__(self, i):
        image = self.noise[i].clone()
        row, column = divmod(int(self.place[i]), 2)
        image[self.colour[i], 4 * row:4 * row + 4, 4 * column:4 * column + 4] += 1
        return image, torch.stack([self.colour[i], 3 + self.place[i], torch.tensor(11)])


torch.manual_seed(0)
torch.set_num_threads(1)
train = torch.utils.data.DataLoader(Pictures(512), batch_size=32, shuffle=True, drop_last=True)
model = CLIP()
gain_or_bias = [p for p in model.parameters() if p.ndim < 2]
rest = [p for p in model.parameters() if p.ndim >= 2]
optimizer = torch.optim.AdamW(
    [{"params": gain_or_bias, "weight_decay": 0.0}, {"params": rest, "weight_decay": 0.2}], lr=3e-3, betas=(0.9, 0.98))

for epoch in range(5):
    model.train()
    for images, texts in train:
        logits_per_image, logits_per_text = model(images, texts)
        ground_truth = torch.arange(len(images))
        loss = (F.cross_entropy(logits_per_image, ground_truth) + F.cross_entropy(logits_per_text, ground_truth)) / 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            model.logit_scale.clamp_(0, math.log(100))

# zero-shot classification: one prompt for each of the twelve classes
model.eval()
prompts = torch.tensor([[c, 3 + p, 11] for c in range(3) for p in range(4)])
test = Pictures(200)
images = torch.stack([test[i][0] for i in range(200)])
with torch.inference_mode():
    guess = model(images, prompts)[0].softmax(-1).argmax(-1)
accuracy = (guess == test.colour * 4 + test.place).float().mean()
print(f"loss {loss.item():.3f} scale {model.logit_scale.exp().item():.1f} zero-shot accuracy {accuracy:.3f}")
