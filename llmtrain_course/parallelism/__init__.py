"""What the page on parallelism will show: splits, groups, pipelines."""
