"""What was published and measured, and what it says of the formulas."""
