"""The toolkit for a training loop that you own, in rooms by subject.

run         `Run`: its methods, the step, the loops
position    global step, epoch and passes, and the way back to them
optim       optimizers: windows, precision, schedules, averages
checkpoint  checkpoints and weights
loading     batches of any epoch from any position
inference   predictions and exports from a checkpoint
rng         seeds and random states
log         logged values, alerts, progress
settings    settings and limits
process     device, signals, terminal, exit
ranks       several processes of one run
"""
