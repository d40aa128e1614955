"""From "PyTorch Gradient Accumulation - 200 Epoch Silent Failure", section Checkpointing.

Repaired: the first comment's sign; a temporary folder; the loop behind the line "usage in training loop", which prints none: it runs
three epochs, and then resumes as a restarted program would. Expected: load_checkpoint returns the finished
epoch, so the resumed run does it again.
"""
# io.thecodeforge: ml-ai tutorial

import torch
import os
import tempfile

folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)


def save_checkpoint(model, optimizer, scheduler, epoch, loss, filepath):
    torch.save({
        'epoch': epoch,
        'model_state_dict': model.state_dict(),
        'optimizer_state_dict': optimizer.state_dict(),
        'scheduler_state_dict': scheduler.state_dict(),
        'loss': loss,
        'rng_state': torch.get_rng_state()  # resume reproducibility
    }, filepath)
    print(f"Checkpoint saved at epoch {epoch}")


def load_checkpoint(model, optimizer, scheduler, filepath):
    if not os.path.exists(filepath):
        print("No checkpoint found. Starting from scratch.")
        return 0, float('inf')
    checkpoint = torch.load(filepath, weights_only=True)
    model.load_state_dict(checkpoint['model_state_dict'])
    optimizer.load_state_dict(checkpoint['optimizer_state_dict'])
    scheduler.load_state_dict(checkpoint['scheduler_state_dict'])
    torch.set_rng_state(checkpoint['rng_state'])
    return checkpoint['epoch'], checkpoint['loss']  # no rule: ADR 0018


for last_epoch in (3, 5):
    # Usage in training loop
    model = torch.nn.Linear(10, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=10)
    start_epoch, best_loss = load_checkpoint(model, optimizer, scheduler, 'experiment_v3.pt')
    print(f"Resuming from epoch {start_epoch}, best loss so far: {best_loss:.4f}")
    for epoch in range(start_epoch, last_epoch):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(torch.randn(32, 10)), torch.randint(0, 2, (32,)))
        loss.backward()
        optimizer.step()
        scheduler.step()
        save_checkpoint(model, optimizer, scheduler, epoch, loss.item(), 'experiment_v3.pt')
os.chdir('/')
