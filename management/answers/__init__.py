"""What answers are made of: pages of rows, refusals, JSON, who may see what."""
