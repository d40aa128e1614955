"""Healthy: LambdaLR per step, linear warm-up from lr 0 and linear decay to 0, AdamW groups without decay on norm and bias."""
import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, RandomSampler, SequentialSampler, TensorDataset


def get_linear_schedule_with_warmup(optimizer, num_warmup_steps, num_training_steps, last_epoch=-1):
    def lr_lambda(current_step):
        if current_step < num_warmup_steps:
            return float(current_step) / float(max(1, num_warmup_steps))
        return max(0.0, float(num_training_steps - current_step) / float(max(1, num_training_steps - num_warmup_steps)))

    return LambdaLR(optimizer, lr_lambda, last_epoch)


class TinyBert(nn.Module):
    def __init__(self, vocab=50, d=32, num_labels=2):
        super().__init__()
        self.tok = nn.Embedding(vocab, d, padding_idx=0)
        self.pos = nn.Embedding(16, d)
        layer = nn.TransformerEncoderLayer(d, 4, 64, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.LayerNorm = nn.LayerNorm(d)
        self.classifier = nn.Linear(d, num_labels)

    def forward(self, input_ids, attention_mask):
        h = self.tok(input_ids) + self.pos(torch.arange(input_ids.size(1)))
        h = self.LayerNorm(self.encoder(h, src_key_padding_mask=~attention_mask))
        m = attention_mask.unsqueeze(-1).float()
        return self.classifier((h * m).sum(1) / m.sum(1))


def make_reviews(n):
    lengths = torch.randint(5, 17, (n,))
    labels = torch.randint(0, 2, (n,))
    ids = torch.randint(12, 50, (n, 16))
    mood = torch.randint(2, 7, (n, 16)) + 5 * labels[:, None]
    ids = torch.where(torch.rand(n, 16) < 0.3, mood, ids)
    mask = torch.arange(16)[None] < lengths[:, None]
    return TensorDataset(ids * mask, mask, labels)


def main():
    torch.manual_seed(42)
    torch.set_num_threads(1)
    train_data, dev_data = make_reviews(512), make_reviews(128)
    train_loader = DataLoader(train_data, sampler=RandomSampler(train_data), batch_size=32)
    dev_loader = DataLoader(dev_data, sampler=SequentialSampler(dev_data), batch_size=64)
    num_epochs = 3
    model = TinyBert()
    no_decay = ["bias", "LayerNorm", "norm", "tok", "pos"]
    groups = [
        {"params": [p for n, p in model.named_parameters() if not any(nd in n for nd in no_decay)], "weight_decay": 0.01},
        {"params": [p for n, p in model.named_parameters() if any(nd in n for nd in no_decay)], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=3e-3, eps=1e-8)
    t_total = len(train_loader) * num_epochs
    scheduler = get_linear_schedule_with_warmup(optimizer, num_warmup_steps=t_total // 10, num_training_steps=t_total)
    for epoch in range(num_epochs):
        model.train()
        for ids, mask, labels in train_loader:
            loss = nn.functional.cross_entropy(model(ids, mask), labels)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            model.zero_grad()
        model.eval()
        correct = 0
        with torch.no_grad():
            for ids, mask, labels in dev_loader:
                correct += (model(ids, mask).argmax(-1) == labels).sum().item()
        print(f"epoch {epoch} lr {scheduler.get_last_lr()[0]:.2e} dev acc {correct / len(dev_data):.4f}")


if __name__ == "__main__":
    main()
