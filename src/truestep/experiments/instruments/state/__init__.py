"""Checksums of all state that a resumed run must restore.

fingerprints: the instrument
digests: checksums of tensors and containers
objects: modules, optimizers, schedules and scalers of a program
"""
