"""Networks trained from scratch to see how few of their neurons fire ("lazy neurons"); modules here load PyTorch."""
