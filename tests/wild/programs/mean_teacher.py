"""Healthy: mean teacher: the EMA teacher runs in train mode without gradients (its dropout is the noise), eval uses the teacher."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(17)
torch.set_num_threads(1)


def create_model(ema=False):
    model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Dropout(0.15), nn.Linear(64, 4))
    if ema:
        for param in model.parameters():
            param.detach_()
    return model


def update_ema_variables(model, ema_model, alpha, global_step):
    # Use the true average until the exponential average is more correct
    alpha = min(1 - 1 / (global_step + 1), alpha)
    for ema_param, param in zip(ema_model.parameters(), model.parameters()):
        ema_param.data.mul_(alpha).add_(param.data, alpha=1 - alpha)


centers = 1.3 * torch.randn(4, 10)


def sample(n):
    y = torch.randint(0, 4, (n,))
    return centers[y] + torch.randn(n, 10), y


model, ema_model = create_model(), create_model(ema=True)
ema_model.load_state_dict(model.state_dict())
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
labelled, labels = sample(60)
unlabelled, _ = sample(1000)
x_test, y_test = sample(500)

global_step = 0
for epoch in range(4):
    model.train()
    ema_model.train()
    for i in range(25):
        idx = torch.randint(0, 60, (20,))
        input = torch.cat([labelled[idx], unlabelled[torch.randint(0, 1000, (44,))]])
        with torch.no_grad():
            ema_logit = ema_model(input)
        logit = model(input)
        class_loss = F.cross_entropy(logit[:20], labels[idx])
        consistency_loss = F.mse_loss(F.softmax(logit, dim=1), F.softmax(ema_logit, dim=1))
        loss = class_loss + 2.0 * consistency_loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        global_step += 1
        update_ema_variables(model, ema_model, 0.97, global_step)
    ema_model.eval()
    with torch.no_grad():
        acc = (ema_model(x_test).argmax(1) == y_test).float().mean().item()
    print(f"epoch {epoch} class {class_loss.item():.4f} consistency {consistency_loss.item():.5f} teacher acc {acc:.4f}")
