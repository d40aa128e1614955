"""Healthy: masked autoencoder on digits: patches shuffled and dropped by argsort of noise, then a linear probe on the frozen encoder."""
import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

torch.manual_seed(0)
torch.set_num_threads(1)


def patchify(images):  # (N, 8, 8) -> (N, 16, 4)
    return images.reshape(-1, 4, 2, 4, 2).permute(0, 1, 3, 2, 4).reshape(-1, 16, 4)


def block(dim):
    return nn.TransformerEncoderLayer(dim, 4, 2 * dim, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)


class MaskedAutoencoderViT(nn.Module):
    def __init__(self, patches=16, patch_dim=4, dim=32, decoder_dim=16):
        super().__init__()
        self.patch_embed = nn.Linear(patch_dim, dim)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos_embed = nn.Parameter(0.02 * torch.randn(1, patches + 1, dim), requires_grad=False)
        self.blocks = nn.ModuleList([block(dim) for _ in range(2)])
        self.norm = nn.LayerNorm(dim)
        self.decoder_embed = nn.Linear(dim, decoder_dim)
        self.mask_token = nn.Parameter(torch.zeros(1, 1, decoder_dim))
        self.decoder_pos_embed = nn.Parameter(0.02 * torch.randn(1, patches + 1, decoder_dim))
        self.decoder_block = block(decoder_dim)
        self.decoder_pred = nn.Linear(decoder_dim, patch_dim)

    def random_masking(self, x, mask_ratio):
        N, L, D = x.shape
        len_keep = int(L * (1 - mask_ratio))
        ids_shuffle = torch.argsort(torch.rand(N, L), dim=1)
        ids_restore = torch.argsort(ids_shuffle, dim=1)
        x = torch.gather(x, 1, ids_shuffle[:, :len_keep].unsqueeze(-1).repeat(1, 1, D))
        mask = torch.ones(N, L)
        mask[:, :len_keep] = 0
        return x, torch.gather(mask, 1, ids_restore), ids_restore

    def forward_encoder(self, patches, mask_ratio):
        x = self.patch_embed(patches) + self.pos_embed[:, 1:]
        x, mask, ids_restore = self.random_masking(x, mask_ratio)
        x = torch.cat(((self.cls_token + self.pos_embed[:, :1]).expand(len(x), -1, -1), x), 1)
        for blk in self.blocks:
            x = blk(x)
        return self.norm(x), mask, ids_restore

    def forward_decoder(self, x, ids_restore):
        x = self.decoder_embed(x)
        tokens = self.mask_token.repeat(x.shape[0], ids_restore.shape[1] + 1 - x.shape[1], 1)
        x_ = torch.gather(torch.cat([x[:, 1:], tokens], 1), 1, ids_restore.unsqueeze(-1).repeat(1, 1, x.shape[2]))
        x = self.decoder_block(torch.cat([x[:, :1], x_], 1) + self.decoder_pos_embed)
        return self.decoder_pred(x)[:, 1:]

    def forward(self, patches, mask_ratio=0.5):
        latent, mask, ids_restore = self.forward_encoder(patches, mask_ratio)
        loss = (self.forward_decoder(latent, ids_restore) - patches).pow(2).mean(-1)
        return (loss * mask).sum() / mask.sum()


digits = load_digits()
x = patchify(torch.tensor(digits.images, dtype=torch.float32) / 8 - 1)
x_train, x_test, y_train, y_test = train_test_split(x, torch.tensor(digits.target), test_size=400, random_state=0)
model = MaskedAutoencoderViT()
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=3e-3, betas=(0.9, 0.95), weight_decay=0.05)
model.train()
for epoch in range(4):
    for batch in x_train.split(64):
        loss = model(batch)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
print(f"reconstruction {loss.item():.4f}")

# linear probe on the class token
model.eval().requires_grad_(False)
features, held_out = model.forward_encoder(x_train, 0.0)[0].mean(1), model.forward_encoder(x_test, 0.0)[0].mean(1)
head = nn.Sequential(nn.BatchNorm1d(32, affine=False), nn.Linear(32, 10))
optimizer = torch.optim.SGD(head.parameters(), lr=0.5, momentum=0.9)
for step in range(60):
    index = torch.randperm(len(features))[:256]
    loss = nn.functional.cross_entropy(head(features[index]), y_train[index])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
head.eval()
print(f"linear probe: accuracy {(head(held_out).argmax(1) == y_test).float().mean():.3f}")
