"""The position of a run: which epoch, step, pass and batch it is at, and the way back there after a resume.

position        `Position`: the passes of the loops under way, and the place where a checkpoint was made
passes          `LoopPass`: one pass over a loader or over step numbers, and its batches
progress        `RunProgress`: global step, epoch and position, shared by steps and loops
carried_passes  record of passes that continue from one epoch to the next
next_calls      requests for a batch: by `for` or by `next()`
given_loaders   the names of DataLoaders, by the order of their first use in an epoch
starts          states at the beginning of an epoch's body, if it runs a model before its loop
"""
