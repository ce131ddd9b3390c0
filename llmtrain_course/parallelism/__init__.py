"""How do you cut a model for many GPUs?"""
