"""Shared by changes: the lines of findings, calls, optimizers, schedules, passes and streams of data."""
