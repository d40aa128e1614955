"""Checksums of all state that a resumed or repeated run must have.

fingerprints: the instrument
digests: checksums of tensors and containers
trace: fingerprints of two runs, compared
operations: the operations of one step
objects: modules, optimizers, schedules and scalers of a program
"""
