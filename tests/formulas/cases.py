"""Published runs, as arguments of the formulas."""


def shape_of(row) -> tuple:
    names = ["num_layers", "hidden_size", "vocab_size", "sequence_length"]
    return (*(row[name] for name in names), row["global_batch_size"])
