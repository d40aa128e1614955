"""Tools for a model, each usable alone: parameter groups, freezing, averages, recomputation, tables, clear errors."""
