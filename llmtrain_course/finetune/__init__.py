"""What does it take to adapt a model?"""
