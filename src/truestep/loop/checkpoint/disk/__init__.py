"""Crash-safe writing.

files          atomic and durable writing of files and folders
manifest       manifest.json: sizes and checksums of the files of a checkpoint
tensor_file    writer and reader of the safetensors format
writer_thread  the thread that writes asynchronous checkpoints
lock           the lock on the folder of a run
"""
