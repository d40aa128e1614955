"""A script with a model, losses and loaders from other files of the package."""

import argparse

import torch

from .data import build_loaders
from .losses import build_loss
from .models import build_model
from .utils import AverageMeter, accuracy, save_checkpoint


def train(loader, model, criterion, optimizer, epoch, args):
    losses = AverageMeter("loss")
    model.train()
    for images, target in loader:
        images, target = images.to(args.device), target.to(args.device)
        output = model(images)
        loss = criterion(output, target)
        losses.update(loss.item(), images.size(0))
        optimizer.zero_grad()  # broken[zero-grad-before-step]: loss.backward()
        loss.backward()  # broken[zero-grad-before-step]: optimizer.zero_grad()
        optimizer.step()
    return losses.avg


def validate(loader, model, args):
    top1 = AverageMeter("acc")
    model.eval()
    with torch.no_grad():
        for images, target in loader:
            images, target = images.to(args.device), target.to(args.device)
            top1.update(accuracy(model(images), target), images.size(0))
    return top1.avg


def main():
    args = argparse.ArgumentParser().parse_args()
    model, criterion = build_model(args).to(args.device), build_loss(args)
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=0.9, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=30, gamma=0.1)
    train_loader, val_loader = build_loaders(args)
    best = 0.0
    for epoch in range(args.epochs):
        train(train_loader, model, criterion, optimizer, epoch, args)
        acc = validate(val_loader, model, args)
        scheduler.step()
        is_best, best = acc > best, max(acc, best)
        save_checkpoint({"epoch": epoch + 1, "state_dict": model.state_dict(), "best": best}, is_best)


if __name__ == "__main__":
    main()
