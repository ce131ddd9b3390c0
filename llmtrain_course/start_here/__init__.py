"""What do your GPUs and days make?"""
