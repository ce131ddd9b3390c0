"""The machine, drawn: SVG strings with their words. The standard library alone.

A drawing is shown in two ways. Live, inside a panel, it follows the page's theme.
Saved in a notebook it is an image that inherits nothing, and brings its own card.
"""
