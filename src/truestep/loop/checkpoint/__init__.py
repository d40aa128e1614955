"""Checkpoints: crash-safe writing, verified reading, comparison on resume, and weights from files.

checkpoint      one finished checkpoint, read from the disk
checkpoints     the folder of checkpoints: save, keep the newest and the best
listing         the checkpoints in a folder, newest or best first; `find`
content         the content of one checkpoint, collected before it is written
snapshot        copies of tensors on the CPU
safe_state      conversion of state to types that load with `weights_only=True`
of_ranks        the states that differ between ranks
parts           tensors of optimizers that are divided over ranks
stateful        the protocol of objects with `state_dict` and `load_state_dict`
run_folder      the folder of a run, and the checkpoint that the run starts from
declared        the declared settings, loaders, optimizers and schedules of a run
comparison      comparison of the declarations of a checkpoint with those of the program
unsaved_models  check for trained parameters that a checkpoint would leave out
weight_files    weights from files of any origin
weights         `load_weights`: weights into a model, with a report of mismatches

`disk/` has the crash-safe writing of files and folders, `remote/` the mirror in a remote storage.
"""
