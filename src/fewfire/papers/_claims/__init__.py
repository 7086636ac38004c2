"""What the recipes of all papers share: claims with effects, power and verdicts, and the canvas of their figures."""
