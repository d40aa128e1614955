"""Times of steps.

phases: time of every step by phase
survey: device, and time by phase over a window
turns: timed steps in turns with another run
clock: the clock by phase
waiting: synchronization with the device
"""
