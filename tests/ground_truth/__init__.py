"""The formulas held against PyTorch; without it, all of this is left out."""
