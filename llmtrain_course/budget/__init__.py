"""What should you train with your GPUs, weeks and money?"""
