"""What operators have laid down.

Users and permissions, policies, what parameters may hold, regular expressions whose time is bounded.
"""
