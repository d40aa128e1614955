"""Both phases in one loop, with sums per phase, as in many tutorials."""

import copy
import time

import torch


def train_model(model, dataloaders, criterion, optimizer, scheduler, num_epochs=25):
    since = time.time()
    best_wts, best_acc = copy.deepcopy(model.state_dict()), 0.0
    for epoch in range(num_epochs):
        for phase in ["train", "val"]:
            if phase == "train":
                model.train()
            else:
                model.eval()
            running_loss, running_corrects = 0.0, 0
            for inputs, labels in dataloaders[phase]:
                optimizer.zero_grad()
                with torch.set_grad_enabled(phase == "train"):
                    outputs = model(inputs)
                    _, preds = torch.max(outputs, 1)
                    loss = criterion(outputs, labels)
                    if phase == "train":
                        loss.backward()
                        optimizer.step()
                running_loss += loss.item() * inputs.size(0)
                running_corrects += torch.sum(preds == labels.data)
            if phase == "train":
                scheduler.step()
            size = len(dataloaders[phase].dataset)
            epoch_loss, epoch_acc = running_loss / size, running_corrects.double() / size
            print(f"{epoch} {phase} {epoch_loss:.4f} {epoch_acc:.4f}")
            if phase == "val" and epoch_acc > best_acc:  # broken[worst-weights-kept]: if phase == "val" and epoch_loss > best_acc:
                best_acc = epoch_acc  # broken[worst-weights-kept]: best_acc = epoch_loss
                best_wts = copy.deepcopy(model.state_dict())
    print(f"{time.time() - since:.0f} s, best {best_acc:.4f}")
    model.load_state_dict(best_wts)
    return model
