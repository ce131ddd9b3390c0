"""What does a step store, and when?"""
