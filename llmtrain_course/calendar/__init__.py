"""When will a run really be done, and what stops it?"""
