"""Optimizers and schedulers: built, stepped, and the parameters that they change."""
