"""Evidence about an error of torch: read from the frames of its traceback, without running code of the program.

crash          `Crash`: the error, and its frames with their code and values
frame_values   values in frames, without properties, repr or comparison
source_code    the syntax of the user's code: where a variable was set, which of these lines ran last
parties        the tensors of a failed operation: weight and input of a layer, two operands
carried        variables and attributes that a loop carries to its next iteration with their graph
stale_weights  a backward pass that needs weights which an optimizer step has changed since
tape           the autograd graph of a tensor
"""
