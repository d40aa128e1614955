"""Series that the windows of a batch were cut from.

sources          series that variables hold, or that overlapping windows and their targets add up to
statistics       statistics of a series: whether they are those of data that were scaled with their own statistics
overlaps         windows of an evaluation whose next step is in windows of the training
scalings         series of evaluations that are scaled with their own statistics, or together with the training
"""
