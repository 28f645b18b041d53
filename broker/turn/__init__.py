"""The loop's turn: its stages in their order, the clock, and what happens between two turns."""
