"""Checks of sequence models.

targets, ahead   the model reads the tokens that it is to predict
windows          windows of tokens that end with the word to predict
ends             the position that is read holds nothing of most samples
masks            attention reads the padding, and not the tokens
padding          padding at the end of a row changes its result
counted          the positions that a loss counts are those of padding, or beside those with a target
loss_terms       the positions that a loss counts, and their targets, on its tape
readings         targets that stand for missing readings, behind a mask that leaves nothing out
states           a state that padding changes is used by the loss
"""
