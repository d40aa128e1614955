"""Objects that a configuration names are made by `instantiate`."""

import hydra
import torch
from hydra.utils import call, instantiate
from omegaconf import DictConfig
from torch.amp import GradScaler, autocast


@hydra.main(version_base=None, config_path="conf", config_name="train")
def main(cfg: DictConfig) -> None:
    call(cfg.seed_everything)
    model = instantiate(cfg.model).to(cfg.device)
    criterion = instantiate(cfg.loss)
    optimizer = instantiate(cfg.optimizer, params=model.parameters())
    scheduler = instantiate(cfg.scheduler, optimizer=optimizer)
    scaler = GradScaler(enabled=cfg.amp)
    train, valid = instantiate(cfg.data.train), instantiate(cfg.data.valid)
    for epoch in range(cfg.epochs):
        model.train()
        for step, batch in enumerate(train):
            with autocast(cfg.device, enabled=cfg.amp):
                loss = criterion(model(batch["image"].to(cfg.device)), batch["label"].to(cfg.device))
            scaler.scale(loss / cfg.accumulate).backward()
            if (step + 1) % cfg.accumulate and step + 1 < len(train):
                continue
            if cfg.clip:
                scaler.unscale_(optimizer)  # broken[clip-before-unscale]: pass
                torch.nn.utils.clip_grad_norm_(model.parameters(), cfg.clip)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad(set_to_none=True)
            if cfg.scheduler.interval == "step":
                scheduler.step()
        if cfg.scheduler.interval == "epoch":
            scheduler.step()
        model.eval()
        with torch.inference_mode():
            total = sum(criterion(model(b["image"]), b["label"]).item() for b in valid)
        print(epoch, total / len(valid))


if __name__ == "__main__":
    main()
