"""How the constants were fitted and how well they hold: run by maintainers, not by readers."""
