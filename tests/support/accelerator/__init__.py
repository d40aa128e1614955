"""Checks that run on any device: a GPU, the CPU, and the stand-in for a GPU (`standin.py`). They need torch alone."""
