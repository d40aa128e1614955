"""Loaders: the order of an epoch, samples in memory, map-style and iterable data sets, DataLoaders of the user."""
