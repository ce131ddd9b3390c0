"""What does a step process, and how do GPUs share it?"""
