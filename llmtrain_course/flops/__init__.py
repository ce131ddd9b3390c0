"""How much work is a step, and what share of the peak is achieved?"""
