"""How many days does a run take, and what does it cost?"""
