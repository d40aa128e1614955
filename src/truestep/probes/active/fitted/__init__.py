"""Statistics that inputs were scaled with, found by the rows of a table as it was measured, and order of its columns.

measured         a table or a series as measured: statistics of its columns, and the places of scaled rows in it
spread           columns of measured values, and the statistics that each can be scaled with
signs            signs in the source: that statistics are computed, and that results have no targets
together         evaluations on rows of a table, with the training scaled with statistics of all of its rows
column_order     columns of an evaluation in the places of others
domains          tables as measured of two domains, beside those that were scaled from them
"""
