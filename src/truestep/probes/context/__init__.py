"""Shared by all probes: numbers of objects, sites in the user's code, repetition of steps, reading unnoticed."""
