"""Checks of data sets, on copies and by the indices of samples.

checks           `DataSetChecks`: runs the checks of data sets
called_rows      the rows of a call, next to those of the training
reads            check: a sample of the evaluation data differs when it is read again
overlap          check: the training uses samples of the evaluation
selections       check: masks or indices of a training, a validation and a test have rows in common
collated         check: a collate function moves a part of a batch alone
copied_loaders   loaders of a test that hold the arrays of another part
held_pairs       samples and labels that a data set holds, of the same rows of their tables
label_maps       images that an augmentation turns, and their label maps, which it does not
stored           stored samples that an operation in place changes in every pass
rewritten        the statement that changes stored samples by random values, through a view
drawn            the samples that a loader draws
near_copies      samples of an evaluation that were made out of samples of the training
contents         comparison of samples by their values
"""
