raise ValueError("Expected input batch_size (4) to match target batch_size (5).")
