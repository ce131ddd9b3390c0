"""What will a whole run take, and will it fit?"""
