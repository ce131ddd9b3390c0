"""From a Hugging Face `config.json` to a `Transformer`: `configs.shape` reads it."""
