"""Tests, in folders by what they test.

`formulas`, `model`, `plan` and `evidence` are the package's floors; `faces` what shows
them; `notebooks` the pages and what each one states; `browser` drives a real one, and
`ground_truth` holds formulas against PyTorch.
"""
