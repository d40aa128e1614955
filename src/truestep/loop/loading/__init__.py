"""Loading of data: reproducible batches of any data set, from any position of an epoch.

loader         `Loader`, the interface: chooses the reader for a data set
batching       the order of an epoch, and the part of one rank
in_memory      reader of data sets in memory
map_style      reader of map-style data sets
iterable       reader of iterable data sets
feed           torch's DataLoader and its workers, driven by requests
draws          the global generators that a data set draws from
dataset_probe  light copies of data sets, and comparison of samples
given          `GivenLoader`: a DataLoader of the user's with the interface of `Loader`
"""
