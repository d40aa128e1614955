"""Batches from a queue, as asynchronous code receives them."""

import asyncio

import torch
from torch import nn


async def produce(queue: asyncio.Queue, batches) -> None:
    for batch in batches:
        await queue.put(batch)
    await queue.put(None)


async def consume(queue: asyncio.Queue, model: nn.Module, optimizer: torch.optim.Optimizer) -> list[float]:
    losses = []
    model.train()
    while (batch := await queue.get()) is not None:
        x, y = batch
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.smooth_l1_loss(model(x), y)
        loss.backward()
        nn.utils.clip_grad_value_(model.parameters(), 0.5)  # broken[clip-after-step]: optimizer.step()
        optimizer.step()  # broken[clip-after-step]: nn.utils.clip_grad_value_(model.parameters(), 0.5)
        losses.append(loss.item())
        await asyncio.sleep(0)
    return losses


async def main(batches) -> None:
    model = nn.Sequential(nn.Linear(10, 20), nn.SiLU(), nn.Linear(20, 1))
    optimizer = torch.optim.NAdam(model.parameters())
    queue: asyncio.Queue = asyncio.Queue(maxsize=8)
    _, losses = await asyncio.gather(produce(queue, batches), consume(queue, model, optimizer))
    print(sum(losses) / len(losses))
