"""Broken: a trainer of several ranks collects the hits of each part, and the main process prints them."""

import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

torch.set_num_threads(1)


class Trainer:
    def __init__(self, rank, loader, validation):
        self.is_main = rank == 0
        self.loader, self.validation = loader, validation
        self.model = DDP(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3)))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.hits = []

    def fit(self, epochs):
        for epoch in range(epochs):
            self.loader.sampler.set_epoch(epoch)
            for inputs, labels in self.loader:
                self.optimizer.zero_grad()
                F.cross_entropy(self.model(inputs), labels).backward()
                self.optimizer.step()
            self.validate()
            if self.is_main:
                print(f"epoch {epoch}: accuracy {sum(self.hits) / len(self.hits):.3f}")

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        self.hits.clear()
        for inputs, labels in self.validation:
            predicted = self.model(inputs).argmax(1)  # error: metrics-not-reduced
            self.hits.extend((predicted == labels).tolist())
        self.model.train()


def train(rank, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    torch.manual_seed(0)
    points = torch.randn(640, 8)
    data = TensorDataset(points, points[:, :3].argmax(1))
    training, held_out = torch.utils.data.random_split(data, [512, 128])
    sampler = DistributedSampler(training)
    loader = DataLoader(training, batch_size=32, sampler=sampler)
    validation = DataLoader(held_out, batch_size=32, sampler=DistributedSampler(held_out, shuffle=False))
    trainer = Trainer(rank, loader, validation)
    trainer.fit(3)
    del trainer  # before the group, or torch 2.13 can hang
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(train, args=(folder,), nprocs=2, start_method="fork")
