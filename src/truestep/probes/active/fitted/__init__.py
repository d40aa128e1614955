"""Statistics that inputs were scaled with, found by the rows of a table as it was measured.

measured         a table or a series as measured: statistics of its columns, and the places of scaled rows in it
spread           columns whose values are measured, and how each can be scaled
signs            signs in the source: that statistics are computed, and that results have no targets
together         evaluations on rows of a table whose statistics the training is scaled with
"""
