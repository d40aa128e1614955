"""Healthy: MoCo: momentum encoder updated without gradients, in train mode, with a queue of keys kept as buffers."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class MoCo(nn.Module):
    def __init__(self, base_encoder, dim=16, K=256, m=0.95, T=0.2):
        super().__init__()
        self.K, self.m, self.T = K, m, T
        self.encoder_q = base_encoder(dim)
        self.encoder_k = base_encoder(dim)
        for param_q, param_k in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
            param_k.data.copy_(param_q.data)  # initialize
            param_k.requires_grad = False  # not update by gradient
        self.register_buffer("queue", F.normalize(torch.randn(dim, K), dim=0))
        self.register_buffer("queue_ptr", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def _momentum_update_key_encoder(self):
        for param_q, param_k in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
            param_k.data = param_k.data * self.m + param_q.data * (1.0 - self.m)

    @torch.no_grad()
    def _dequeue_and_enqueue(self, keys):
        ptr = int(self.queue_ptr)
        self.queue[:, ptr:ptr + keys.shape[0]] = keys.T
        self.queue_ptr[0] = (ptr + keys.shape[0]) % self.K

    def forward(self, im_q, im_k):
        q = F.normalize(self.encoder_q(im_q), dim=1)
        with torch.no_grad():
            self._momentum_update_key_encoder()
            k = F.normalize(self.encoder_k(im_k), dim=1)
        l_pos = torch.einsum("nc,nc->n", [q, k]).unsqueeze(-1)
        l_neg = torch.einsum("nc,ck->nk", [q, self.queue.clone().detach()])
        logits = torch.cat([l_pos, l_neg], dim=1) / self.T
        labels = torch.zeros(logits.shape[0], dtype=torch.long)
        self._dequeue_and_enqueue(k)
        return logits, labels


def mlp(dim):
    return nn.Sequential(nn.Linear(12, 48), nn.BatchNorm1d(48), nn.ReLU(), nn.Linear(48, dim))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    centers = 2 * torch.randn(32, 12)
    model = MoCo(mlp)
    optimizer = torch.optim.SGD(model.encoder_q.parameters(), 0.1, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    first = None
    for step in range(120):
        base = centers[torch.randint(0, 32, (64,))] + 0.5 * torch.randn(64, 12)
        output, target = model(base + 0.2 * torch.randn_like(base), base + 0.2 * torch.randn_like(base))
        loss = criterion(output, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        first = first or loss.item()
    print(f"contrastive loss {first:.3f} -> {loss.item():.3f}")

    model.eval()
    with torch.no_grad():
        a = F.normalize(model.encoder_q(centers + 0.3 * torch.randn_like(centers)), dim=1)
        b = F.normalize(model.encoder_q(centers), dim=1)
    print("retrieval@1", ((a @ b.T).argmax(1) == torch.arange(32)).float().mean().item())


main()
