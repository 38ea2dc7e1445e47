"""Networks that turn samples into features: backbones, heads, and their evaluation row block by row block."""
