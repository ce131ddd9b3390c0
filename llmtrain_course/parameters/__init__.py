"""How many parameters does a model have, and where are they?"""
