"""The preprocessing of a data set, saved with a run and applied to new files: statistics, vocabulary, columns, sizes.

preparation   `Preparation`: the base class, and the way back from its description
of_pictures   images: size, channels, mean and standard deviation
of_rows       rows of a table: columns, categories, fill values, means
of_lines      lines of text: the vocabulary
of_prompts    a text for a language model: its characters
of_arrays     arrays of numbers: shape, type, mean and standard deviation
"""
