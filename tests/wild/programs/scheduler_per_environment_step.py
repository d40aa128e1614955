"""Healthy: a schedule that counts steps of an environment: most come without an update, with calls without gradients."""
import torch
import torch.nn as nn
import torch.nn.functional as F


def main(total=240, every=4):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    policy = nn.Sequential(nn.Linear(3, 32), nn.Tanh(), nn.Linear(32, 2))
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, total_iters=total)
    memory, state = [], torch.randn(3)
    for step in range(total):
        with torch.no_grad():
            action = policy(state).argmax().item() if torch.rand(()) > 0.2 else int(torch.randint(0, 2, ()))
        reward = float((state[0] > 0) == (action == 1))
        memory.append((state, action, reward))
        state = torch.randn(3)
        if len(memory) >= 16 and step % every == 0:
            pick = torch.randint(0, len(memory), (16,))
            states = torch.stack([memory[i][0] for i in pick])
            actions = torch.tensor([memory[i][1] for i in pick])
            rewards = torch.tensor([memory[i][2] for i in pick])
            value = policy(states).gather(1, actions[:, None]).squeeze(1)
            optimizer.zero_grad()
            F.mse_loss(value, rewards).backward()
            optimizer.step()
        schedule.step()
    print(f"reward {sum(r for _, _, r in memory[-60:]) / 60:.3f}", f"lr {schedule.get_last_lr()[0]:.4f}")


if __name__ == "__main__":
    main()
