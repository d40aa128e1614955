# says: `model.0` takes 8 numbers per sample and was given 6
import argparse

import torch
from torch import nn


def build(args):
    settings = vars(args)
    return nn.Sequential(nn.Linear(settings["width"], 1))


def evaluate(args, data):
    model = build(args)
    model.eval()
    print(vars(args), dir(args)[-1])
    with torch.no_grad():
        x = data[:, 1:]  # related
        return model(x)  # died: shapes-do-not-fit


parser = argparse.ArgumentParser()
parser.add_argument("--width", type=int, default=8)
evaluate(parser.parse_args([]), torch.randn(4, 7))
