"""How many bytes does a parameter need in training, and why?"""
