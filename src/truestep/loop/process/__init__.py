"""The process around a run: device, signals, terminal, exit, versions and machine, stack levels of warnings."""
