"""Healthy: a GAN in fp16: one scaler for two optimizers, each loss in two scaled parts, the critic polluted and cleared."""
import torch
import torch.nn as nn
import torch.nn.functional as F


def main(steps=60):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    gen = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
    disc = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
    opt_g = torch.optim.SGD(gen.parameters(), lr=0.02)
    opt_d = torch.optim.SGD(disc.parameters(), lr=0.02)
    scaler = torch.amp.GradScaler("cpu", init_scale=512.0, growth_interval=25)
    one, zero = torch.ones(64, 1), torch.zeros(64, 1)
    for step in range(steps):
        real = torch.randn(64, 2) * 0.3 + torch.tensor([1.0, -1.0])
        opt_d.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            fake = gen(torch.randn(64, 4))
            loss_real = F.binary_cross_entropy_with_logits(disc(real).float(), one)
            loss_fake = F.binary_cross_entropy_with_logits(disc(fake.detach()).float(), zero)
        part_real, part_fake = scaler.scale([loss_real, loss_fake])
        part_real.backward()
        part_fake.backward()
        scaler.step(opt_d)

        opt_g.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss_g = F.binary_cross_entropy_with_logits(disc(fake).float(), one)
        spread = (fake.float().std(0) - 0.3).square().sum()
        (scaler.scale(loss_g) + 0.1 * scaler.scale(spread)).backward()
        scaler.unscale_(opt_g)
        norm = nn.utils.clip_grad_norm_(gen.parameters(), 5.0)
        scaler.step(opt_g)
        scaler.update()
        if step % 20 == 0:
            print(step, f"{loss_real.item():.3f} {loss_g.item():.3f} norm {norm:.3f} scale {scaler.get_scale():.0f}")


if __name__ == "__main__":
    main()
