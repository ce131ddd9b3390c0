"""What do GPUs send each other, and when does it hurt?"""
